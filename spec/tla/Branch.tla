------------------------------- MODULE Branch -------------------------------
(***************************************************************************)
(* Open branches: who waits for whom, and what a barrier that passed knows *)
(* (BRANCH-3 to 13).                                                       *)
(*                                                                         *)
(* Scopes have numbers; 1 is the request that comes first.  A scope hands  *)
(* work to a task in a block (Announce), or calls a service and waits for  *)
(* its answer (Call).  It may leave its lineage beside a value, or read    *)
(* what somebody left there.  A task closes its branch, which makes known  *)
(* what it added; or it dies, and never does.                              *)
(*                                                                         *)
(* An entry of a lineage is a pair: <<"branch", n>>, announced for task n, *)
(* or <<"write", n>>, what scope n wrote.                                  *)
(*                                                                         *)
(* The table of branches is one place here.  A replica of it that is       *)
(* behind shows fewer rows, and no row changes: then a barrier resolves a  *)
(* branch later, as any Resolve here may come late.                        *)
(*                                                                         *)
(* Not here: leases and deadlines (BRANCH-15 and 16 end waits, and never   *)
(* pass), a task that is tried again (BRANCH-10: the first close stands,   *)
(* what is written later is counted as late), threads (BRANCH-11), writes  *)
(* in flight at the close.                                                 *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Last,       \* scopes are 1 .. Last
    Calls,      \* TRUE: a scope may call a service
    Values,     \* TRUE: lineages rest beside a value
    Unsure,     \* TRUE: a sender may see an error
    OneWorker,  \* TRUE: one worker runs the tasks of a block, one by one
    Rules

AllRules == {
    "branchEach",    \* BRANCH-3: each text gets a branch of its own
    "noSiblings",    \* BRANCH-4: a text holds none of its block's branches
    "within",        \* BRANCH-6: who is called by a task is within its branch,
    "takerCloses",   \* BRANCH-6: and does not close it
    "notOwn",        \* BRANCH-7: a scope holds no branch of its own
    "ofTheText",     \* BRANCH-8: what a branch is one's own by belongs to the text, and rests beside no value
    "onlyUntaken",   \* BRANCH-5: withdrawn is what is known not to be taken up
    "inRounds",      \* BRANCH-12: branches that a closed one brought are waited for, too
    "noRowIsOpen"    \* BRANCH-13
    }

ASSUME Rules \subseteq AllRules

Scopes    == 1 .. Last
Branch(n) == <<"branch", n>>
Write(n)  == <<"write", n>>
Branches  == {Branch(n) : n \in Scopes}
Writes    == {Write(n) : n \in Scopes}
NoRow     == {<<"no row", 0>>}

VARIABLES
    scope,  \* scope[n]: see Beginning
    row,    \* row[n]: the lineage that branch n stands for, or NoRow
    value   \* what rests beside a value: a lineage, and (without ofTheText) own branches

vars == <<scope, row, value>>

Beginning(n) ==
    [at      |-> IF n = 1 THEN "work" ELSE "nowhere",  \* or "sent", "call", "barrier", "end"
     lineage |-> {},
     text    |-> {},  \* the lineage that it came with
     own     |-> {},  \* its own branches
     branch  |-> 0,   \* of a task: the one that was announced for it
     block   |-> {},  \* the branches of the block that is open now
     mates   |-> {},  \* of a task that one worker runs: those before it in its block
     sender  |-> 0,   \* who handed it over,
     caller  |-> 0,   \* or who waits for its answer
     asked   |-> {}]  \* the branches that its last barrier began with

Init ==
    /\ scope = [n \in Scopes |-> Beginning(n)]
    /\ row = [n \in Scopes |-> NoRow]
    /\ value = [lineage |-> {}, own |-> {}]

Works(n) == scope[n].at = "work"

\* The lowest number that nobody has, because numbers say nothing.
IsNext(n) == scope[n].at = "nowhere" /\ \A m \in 1 .. n - 1 : scope[m].at # "nowhere"

WithoutOwn(lineage, own) == IF "notOwn" \in Rules THEN lineage \ own ELSE lineage

Joined(n, lineage) == scope[n].lineage \cup WithoutOwn(lineage, scope[n].own)

Joins(n, lineage) == scope' = [scope EXCEPT ![n].lineage = Joined(n, lineage)]

-----------------------------------------------------------------------------
(* Handing over. *)

Announce(p, c) ==
    LET new    == "branchEach" \in Rules \/ scope[p].block = {}
        branch == IF new THEN Branch(c) ELSE CHOOSE each \in scope[p].block : TRUE
        held   == scope[p].lineage
    IN  /\ Works(p) /\ IsNext(c)
        /\ scope' = [scope EXCEPT
            ![p].block = @ \cup {branch}, ![p].lineage = @ \cup {branch},
            ![c] = [@ EXCEPT
                !.at = "sent", !.sender = p, !.branch = branch[2], !.own = {branch},
                !.text = IF "noSiblings" \in Rules THEN held \ scope[p].block ELSE held,
                !.mates = IF OneWorker THEN {n \in Scopes : Branch(n) \in scope[p].block} ELSE {}]]
        /\ UNCHANGED <<row, value>>

EndBlock(p) ==
    /\ Works(p) /\ scope[p].block # {}
    /\ scope' = [scope EXCEPT ![p].block = {}]
    /\ UNCHANGED <<row, value>>

\* The sender saw an error.  Only without onlyUntaken may the message arrive all the same.
Withdraw(p, c) ==
    /\ Unsure /\ Works(p) /\ Branch(c) \in scope[p].block /\ scope[c].at = "sent" /\ row[c] = NoRow
    /\ row' = [row EXCEPT ![c] = {}]
    /\ scope' = [scope EXCEPT
        ![p].lineage = @ \ {Branch(c)},
        ![c].at = IF "onlyUntaken" \in Rules THEN "end" ELSE @]
    /\ UNCHANGED value

Mates(c) == {d \in Scopes : d \in scope[c].mates \/ c \in scope[d].mates}

Start(c) ==
    /\ scope[c].at = "sent"
    /\ \A d \in Mates(c) : scope[d].at \in {"sent", "end"}
    /\ scope' = [scope EXCEPT ![c].at = "work", ![c].lineage = WithoutOwn(scope[c].text, scope[c].own)]
    /\ UNCHANGED <<row, value>>

Close(c) ==
    /\ Works(c) /\ scope[c].sender # 0 /\ scope[c].block = {}
    /\ scope' = [scope EXCEPT ![c].at = "end"]
    /\ row' = [row EXCEPT ![scope[c].branch] =
        IF @ = NoRow THEN scope[c].lineage \ scope[c].text ELSE @]
    /\ UNCHANGED value

-----------------------------------------------------------------------------
(* Calling, writing, reading. *)

Call(p, c) ==
    /\ Calls /\ Works(p) /\ scope[p].block = {} /\ IsNext(c)
    /\ scope' = [scope EXCEPT
        ![p].at = "call",
        ![c] = [@ EXCEPT
            !.at = "work", !.caller = p, !.text = scope[p].lineage, !.lineage = scope[p].lineage,
            !.own = IF "within" \in Rules THEN scope[p].own ELSE {}]]
    /\ UNCHANGED <<row, value>>

Return(c) ==
    LET p == scope[c].caller
    IN  /\ Works(c) /\ p # 0 /\ scope[c].block = {}
        /\ scope' = [scope EXCEPT
            ![c].at = "end", ![p].at = "work", ![p].lineage = Joined(p, scope[c].lineage)]
        /\ row' = [n \in Scopes |->
            IF "takerCloses" \notin Rules /\ Branch(n) \in scope[c].own /\ row[n] = NoRow
            THEN scope[c].lineage \ scope[c].text ELSE row[n]]
        /\ UNCHANGED value

DoWrite(n) ==
    /\ Works(n) /\ Write(n) \notin scope[n].lineage
    /\ Joins(n, {Write(n)})
    /\ UNCHANGED <<row, value>>

LeaveBeside(n) ==
    /\ Values /\ Works(n)
    /\ value' = [lineage |-> scope[n].lineage, own |-> IF "ofTheText" \in Rules THEN {} ELSE scope[n].own]
    /\ value' # value
    /\ UNCHANGED <<scope, row>>

Read(n) ==
    LET own == scope[n].own \cup value.own
    IN  /\ Values /\ Works(n)
        /\ scope' = [scope EXCEPT
            ![n].own = own, ![n].lineage = WithoutOwn(@ \cup value.lineage, own)]
        /\ scope' # scope
        /\ UNCHANGED <<row, value>>

-----------------------------------------------------------------------------
(* A barrier. *)

OpenBranches(n) == WithoutOwn(scope[n].lineage \cap Branches, scope[n].own)

Begin(n) ==
    /\ Works(n) /\ scope[n].block = {} /\ OpenBranches(n) # {}
    /\ scope' = [scope EXCEPT ![n].at = "barrier", ![n].asked = OpenBranches(n)]
    /\ UNCHANGED <<row, value>>

Resolve(n) ==
    /\ scope[n].at = "barrier"
    /\ \E branch \in OpenBranches(n) :
        LET found == IF row[branch[2]] = NoRow THEN {} ELSE row[branch[2]]
            taken == IF "inRounds" \in Rules THEN found ELSE found \ Branches
        IN  /\ row[branch[2]] # NoRow \/ "noRowIsOpen" \notin Rules
            /\ scope' = [scope EXCEPT ![n].lineage = Joined(n, taken) \ {branch}]
    /\ UNCHANGED <<row, value>>

Pass(n) ==
    /\ scope[n].at = "barrier" /\ OpenBranches(n) = {}
    /\ scope' = [scope EXCEPT ![n].at = "work"]
    /\ UNCHANGED <<row, value>>

Next ==
    \/ \E n \in Scopes :
        \/ EndBlock(n) \/ Start(n) \/ Close(n) \/ Return(n)
        \/ DoWrite(n) \/ LeaveBeside(n) \/ Read(n)
        \/ Begin(n) \/ Resolve(n) \/ Pass(n)
    \/ \E p, c \in Scopes : Announce(p, c) \/ Withdraw(p, c) \/ Call(p, c)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What has to hold.  Who is within what is taken from who called whom, and never from own. *)

RECURSIVE Callers(_)
Callers(n) == IF n = 0 THEN {} ELSE {n} \cup Callers(scope[n].caller)

\* A scope waits for whom it called, in a barrier for the tasks of open branches, and in a worker's
\* queue for the task that runs there.
WaitsFor(n) ==
    CASE scope[n].at = "call" -> {c \in Scopes : scope[c].caller = n /\ scope[c].at # "end"}
      [] scope[n].at = "barrier" -> {c \in Scopes : Branch(scope[c].branch) \in OpenBranches(n)
                                                    /\ row[scope[c].branch] = NoRow}
      [] scope[n].at = "sent" -> {d \in Mates(n) : scope[d].at \notin {"sent", "end"}}
      [] OTHER -> {}

RECURSIVE WaitsInTheEndFor(_, _)
WaitsInTheEndFor(some, steps) ==
    IF steps = 0 THEN some
    ELSE WaitsInTheEndFor(some \cup UNION {WaitsFor(m) : m \in some}, steps - 1)

NobodyWaitsForHimself == \A n \in Scopes : n \notin WaitsInTheEndFor(WaitsFor(n), Last)

\* A smaller law, which holds whatever way a lineage came in.
NobodyWaitsForHisCaller ==
    \A n \in Scopes : scope[n].at = "barrier" => WaitsFor(n) \cap Callers(n) = {}

\* Those branches, and what they brought when they were closed.
RECURSIVE Brought(_, _)
Brought(some, steps) ==
    IF steps = 0 THEN some
    ELSE Brought(some \cup ((UNION {row[each[2]] : each \in some}) \cap Branches), steps - 1)

\* A barrier that passed has met the writes of the tasks that it waited for, and of theirs.
PassKnowsTheWrites ==
    \A n \in Scopes : Works(n) =>
        \A c \in {d \in Scopes : scope[d].sender # 0 /\ Branch(scope[d].branch) \in Brought(scope[n].asked, Last)} :
            c \notin Callers(n) =>
                /\ row[scope[c].branch] # NoRow
                /\ Writes \cap (scope[c].lineage \ scope[c].text) \subseteq scope[n].lineage

\* Who handed work over holds its branch, or knows what it wrote.
SenderKnows ==
    \A c \in Scopes :
        (scope[c].sender # 0 /\ Write(c) \in scope[c].lineage) =>
            {Branch(scope[c].branch), Write(c)} \cap scope[scope[c].sender].lineage # {}

\* Nobody passes by a branch as his own that he does not work within.
OwnIsWithin ==
    \A n \in Scopes : \A branch \in scope[n].own :
        \E c \in Callers(n) : scope[c].sender # 0 /\ scope[c].branch = branch[2]
=============================================================================
