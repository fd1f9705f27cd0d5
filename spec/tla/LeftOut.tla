------------------------------ MODULE LeftOut ------------------------------
(***************************************************************************)
(* Which servers a barrier judges, and which it names as left out          *)
(* (BAR-26, 27, 53, 54).                                                   *)
(*                                                                         *)
(* Readers are sent to the servers of the region, which come and go, and a *)
(* connection that they have open may outlive that.  The engine hears from *)
(* discovery once a tick who they are; an answer may fail, and comes out   *)
(* empty.  It asks the servers of its list for the one write that is       *)
(* wanted; some are silent.  Readers may reach a server that is silent for *)
(* the engine.                                                             *)
(*                                                                         *)
(* Not here: a server that loses the write while it answers (Barrier), and *)
(* servers that the wrapped client reaches by itself (BAR-52).             *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    Servers,         \* a set of model values
    OutAfter,        \* replica_out_after
    Grace,           \* so long does the last answer of discovery stand (30 s)
    LeftFor,         \* ANTIPODE_LEFT_SERVER_MS
    ConnectionLife,  \* so long may a connection outlive its server's place in the region
    MaxChanges,      \* so many times a server joins, leaves, falls silent or is built anew
    Rules

AllRules == {
    "outIsNamed",       \* BAR-26: a server that was left out is named, and the result is not complete
    "allOutIsUnproven", \* BAR-26
    "byItsOwnAnswer",   \* BAR-27: it is judged again by what it says then, and not by what it had proved
    "emptyIsAFault",    \* BAR-53: an empty answer leaves the list as it is,
    "graceEnds",        \* BAR-53: for so long
    "awayIsNamed"       \* BAR-54: a server that discovery took away is named
    }

ASSUME Rules \subseteq AllRules

None == -1
Least(a, b) == IF a < b THEN a ELSE b

VARIABLES
    server,   \* server[s]: see Init
    engine,   \* engine[s]: what the engine knows of s
    listAge,  \* so long ago was the last answer that was not empty
    changes

vars == <<server, engine, listAge, changes>>

Unknown == [listed |-> FALSE, quiet |-> 0, out |-> FALSE, proof |-> FALSE, away |-> None]

Init ==
    /\ \E region \in SUBSET Servers :
        /\ region # {}
        /\ server = [s \in Servers |->
            [in    |-> s \in region,  \* readers are sent there,
             since |-> IF s \in region THEN Grace + 1 ELSE 0,  \* for so long
             left  |-> None,          \* or so long ago they were
             known |-> s \in region,  \* an answer of discovery had it since it joined
             open  |-> FALSE,         \* a reader has a connection open
             talks |-> TRUE,          \* it answers the engine
             has   |-> FALSE]]        \* the write
        /\ engine = [s \in Servers |-> [Unknown EXCEPT !.listed = s \in region]]
    /\ listAge = 0 /\ changes = 0

Change == changes < MaxChanges /\ changes' = changes + 1

-----------------------------------------------------------------------------
(* The servers, and their readers. *)

Apply(s) ==
    /\ ~server[s].has
    /\ server' = [server EXCEPT ![s].has = TRUE]
    /\ UNCHANGED <<engine, listAge, changes>>

Join(s) ==
    /\ ~server[s].in /\ Change
    /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.in = TRUE, !.since = 0, !.left = None, !.known = FALSE]]
    /\ UNCHANGED <<engine, listAge>>

Leave(s) ==
    /\ server[s].in /\ Change
    /\ \E other \in Servers \ {s} : server[other].in
    /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.in = FALSE, !.since = 0, !.left = 0]]
    /\ UNCHANGED <<engine, listAge>>

Connect(s) ==
    /\ server[s].in /\ ~server[s].open
    /\ server' = [server EXCEPT ![s].open = TRUE]
    /\ UNCHANGED <<engine, listAge, changes>>

Disconnect(s) ==
    /\ server[s].open
    /\ server' = [server EXCEPT ![s].open = FALSE]
    /\ UNCHANGED <<engine, listAge, changes>>

FallSilent(s) ==
    /\ server[s].talks /\ Change
    /\ server' = [server EXCEPT ![s].talks = FALSE]
    /\ UNCHANGED <<engine, listAge>>

Speak(s) ==
    /\ ~server[s].talks
    /\ server' = [server EXCEPT ![s].talks = TRUE]
    \* Without the rule the connection alone brings it back, with its old proof.
    /\ engine' = [engine EXCEPT ![s].out = @ /\ "byItsOwnAnswer" \in Rules]
    /\ UNCHANGED <<listAge, changes>>

\* That takes longer than to be left out.
BuildAnew(s) ==
    /\ ~server[s].talks /\ engine[s].out /\ server[s].has /\ Change
    /\ server' = [server EXCEPT ![s].has = FALSE]
    /\ UNCHANGED <<engine, listAge>>

-----------------------------------------------------------------------------
(* The engine. *)

Answer(s) ==
    /\ server[s].talks /\ engine[s].listed
    /\ engine' = [engine EXCEPT ![s] = [@ EXCEPT !.quiet = 0, !.out = FALSE, !.proof = server[s].has]]
    /\ UNCHANGED <<server, listAge, changes>>

\* A tick older: who is silent for too long is out, and proves nothing any more.
Older(s) ==
    LET quiet == IF engine[s].listed THEN Least(engine[s].quiet + 1, OutAfter) ELSE 0
        out   == quiet >= OutAfter /\ ~server[s].talks
    IN  [engine[s] EXCEPT
            !.quiet = quiet, !.out = @ \/ out,
            !.proof = @ /\ ~(out /\ "byItsOwnAnswer" \in Rules),
            !.away = IF @ = None \/ @ >= LeftFor THEN None ELSE @ + 1]

Listed(s, list) ==
    IF s \in list THEN IF engine[s].listed THEN Older(s) ELSE [Unknown EXCEPT !.listed = TRUE]
    ELSE IF engine[s].listed THEN [Unknown EXCEPT !.away = 0] ELSE Older(s)

Region == {s \in Servers : server[s].in}

\* Time goes on: no connection outlives its life, and discovery answers, or fails.
Tick ==
    /\ \A s \in Servers : (server[s].open /\ ~server[s].in) => server[s].left < ConnectionLife
    /\ \E fails \in BOOLEAN :
        \E list \in
            IF ~fails THEN {Region}
            ELSE IF "emptyIsAFault" \in Rules THEN {{s \in Servers : engine[s].listed}}
            ELSE {{s} : s \in {each \in Servers : engine[each].listed}} :  \* the client's own alone
            /\ engine' = [s \in Servers |-> Listed(s, list)]
            /\ listAge' = IF fails /\ "emptyIsAFault" \in Rules THEN Least(listAge + 1, Grace + 1) ELSE 0
            /\ server' = [s \in Servers |-> [server[s] EXCEPT
                !.since = IF server[s].in THEN Least(@ + 1, Grace + 1) ELSE 0,
                !.left = IF @ = None THEN None ELSE Least(@ + 1, ConnectionLife),
                !.known = @ \/ (~fails /\ server[s].in)]]
    /\ UNCHANGED changes

Next ==
    \/ \E s \in Servers :
        \/ Apply(s) \/ Join(s) \/ Leave(s) \/ Connect(s) \/ Disconnect(s)
        \/ FallSilent(s) \/ Speak(s) \/ BuildAnew(s) \/ Answer(s)
    \/ Tick

Spec == Init /\ [][Next]_vars

Symmetry == Permutations(Servers)

-----------------------------------------------------------------------------
(* A barrier that ends now. *)

Judged == {s \in Servers : engine[s].listed /\ ~engine[s].out}

Named ==
    {s \in Servers :
        \/ "outIsNamed" \in Rules /\ engine[s].listed /\ engine[s].out
        \/ "awayIsNamed" \in Rules /\ ~engine[s].listed /\ engine[s].away # None}

Passes ==
    /\ "graceEnds" \in Rules => listAge <= Grace
    /\ "allOutIsUnproven" \in Rules => Judged # {}
    /\ \A s \in Judged : engine[s].proof

\* Where readers may read: but for who joined lately, and was in no answer since (BAR-24).
MayBeRead(s) ==
    \/ server[s].in /\ server[s].since > Grace
    \/ server[s].open /\ server[s].known

(* What has to hold. *)

\* Where a barrier passes, who may be read and has not got the write is named; so a pass that names
\* nobody is one of all.
PassNamesTheRest ==
    Passes => \A s \in Servers : MayBeRead(s) => server[s].has \/ s \in Named

\* A pass is somebody's word.
SomebodyIsJudged == Passes => Judged # {}

\* Not laws.  TLC has to refute them: else nobody passes who names somebody, or nobody.
NobodyPassesNamingNobody == ~(Passes /\ Named = {})
NobodyPassesNamingSome == ~(Passes /\ Named # {})
=============================================================================
