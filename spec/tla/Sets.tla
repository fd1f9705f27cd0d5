-------------------------------- MODULE Sets --------------------------------
(***************************************************************************)
(* What a server says of a position where it gives the set of what it has, *)
(* as MySQL's executed GTIDs do, and the position of a read there          *)
(* (EPOCH-6, 30, 31).                                                      *)
(*                                                                         *)
(* A transaction has the name of the server that wrote it and a number,    *)
(* and these are all that servers know it by.  At each server it is on its *)
(* way first (owned), then its write can be seen (shown), and then the set *)
(* says so (done); from owned to done it goes in one step.  A replica      *)
(* takes what its source has done in any order, so a set may have holes.   *)
(*                                                                         *)
(* A position covers all of its name up to its number, because scopes keep *)
(* the greatest only.  A reader that saw a write takes a position behind   *)
(* it, by two questions between which anything may happen.                 *)
(*                                                                         *)
(* Not here: what an operator settled, and when a hole that stays counts   *)
(* as an unknown epoch (EPOCH-13).                                         *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    Servers,        \* a set of model values
    MaxWrites,
    MaxPromotions,
    MaxMoves,       \* so many times a server is pointed to a primary or built anew
    MaxReads,
    Rules

AllRules == {
    "allUpToIt",     \* EPOCH-30: behind a hole a number proves nothing
    "setHasNoOrder", \* EPOCH-30: no write of another server says that a name has ended
    "onlyDone",      \* EPOCH-30: what is on its way at the server does not count as there,
    "ownedCounts",   \* EPOCH-31: and it does count in the position of a read,
    "ownedFirst",    \* EPOCH-31: because it is asked for before the set
    "newNames"       \* EPOCH-6, EPOCH-29: what is built anew has a new name
    }

ASSUME Rules \subseteq AllRules

None == 0

VARIABLES
    server,  \* server[s]: its name, owned, shown, done; primary or not, and its source
    told,    \* the positions that somebody was given, each with the write that it is for
    read,    \* what a reader has seen and asked so far
    spent

vars == <<server, told, read, spent>>

NoRead == [at |-> None, of |-> None, step |-> 0, numbers |-> {}]
Most   == [writes |-> MaxWrites, promotions |-> MaxPromotions, moves |-> MaxMoves, reads |-> MaxReads]

Spend(what) == spent[what] < Most[what] /\ spent' = [spent EXCEPT ![what] = @ + 1]

Init ==
    /\ \E first \in Servers : server = [s \in Servers |->
        [name |-> s, again |-> 0, owned |-> {}, shown |-> {}, done |-> {},
         primary |-> s = first, source |-> IF s = first THEN None ELSE first]]
    /\ told = {} /\ read = NoRead
    /\ spent = [writes |-> 0, promotions |-> 0, moves |-> 0, reads |-> 0]

\* A server that was built anew has the same name but for a number behind it.
Name(s) == <<server[s].name, server[s].again>>

Numbers(transactions, name) == {each.number : each \in {some \in transactions : some.name = name}}

Greatest(numbers) == CHOOSE n \in numbers \cup {0} : \A m \in numbers \cup {0} : m <= n

Known(s) == server[s].owned \cup server[s].done

Has(s, write) == write \in server[s].shown

-----------------------------------------------------------------------------
(* The servers. *)

Write(p) ==
    LET next == [name |-> Name(p), number |-> 1 + Greatest(Numbers(Known(p), Name(p))), write |-> spent.writes + 1]
    IN  /\ server[p].primary /\ Spend("writes")
        /\ server' = [server EXCEPT ![p].owned = @ \cup {next}]
        /\ UNCHANGED <<told, read>>

\* A server does not take twice what has the same name and number.
Take(r) ==
    LET p == server[r].source
    IN  /\ p # None
        /\ \E each \in server[p].done :
            /\ each.number \notin Numbers(Known(r), each.name)
            /\ server' = [server EXCEPT ![r].owned = @ \cup {each}]
        /\ UNCHANGED <<told, read, spent>>

Show(s) ==
    /\ \E each \in server[s].owned :
        /\ ~Has(s, each.write)
        /\ server' = [server EXCEPT ![s].shown = @ \cup {each.write}]
    /\ UNCHANGED <<told, read, spent>>

\* The writer's commit returns when its own server is done.
Finish(s) ==
    /\ \E each \in server[s].owned :
        /\ Has(s, each.write)
        /\ server' = [server EXCEPT ![s].owned = @ \ {each}, ![s].done = @ \cup {each}]
        /\ told' = IF each.name # Name(s) THEN told
                   ELSE told \cup {[write |-> each.write, name |-> each.name, number |-> each.number]}
    /\ UNCHANGED <<read, spent>>

\* Nobody tells the old primary.  What is on its way at the new one is applied first.
Promote(r) ==
    /\ ~server[r].primary /\ server[r].owned = {} /\ Spend("promotions")
    /\ server' = [server EXCEPT ![r].primary = TRUE, ![r].source = None]
    /\ UNCHANGED <<told, read>>

\* A server whose set is part of a primary's goes on from there.
CanGoOn(r, p) ==
    \A each \in Known(r) : each.number \in Numbers(server[p].done, each.name)

Follow(r, p) ==
    /\ r # p /\ server[p].primary /\ server[r].source # p /\ CanGoOn(r, p) /\ Spend("moves")
    /\ server' = [server EXCEPT ![r].primary = FALSE, ![r].source = p]
    /\ UNCHANGED <<told, read>>

\* Any other is built anew from a copy.
BuildAnew(r, p) ==
    /\ r # p /\ server[p].primary /\ ~CanGoOn(r, p) /\ Spend("moves")
    /\ server' = [server EXCEPT ![r] = [@ EXCEPT
        !.owned = {}, !.done = server[p].done, !.shown = {each.write : each \in server[p].done},
        !.primary = FALSE, !.source = p, !.again = IF "newNames" \in Rules THEN @ + 1 ELSE @]]
    /\ read' = IF read.at = r THEN NoRead ELSE read
    /\ UNCHANGED told

-----------------------------------------------------------------------------
(* The reader: it sees a write, asks for what is on its way and for the set, and takes the greatest. *)

BeginRead(s) ==
    /\ read = NoRead /\ Spend("reads")
    /\ \E each \in {some \in Known(s) : Has(s, some.write)} :
        read' = [at |-> s, of |-> each, step |-> 0, numbers |-> {}]
    /\ UNCHANGED <<server, told>>

Asked == IF "ownedFirst" \in Rules THEN <<"owned", "done">> ELSE <<"done", "owned">>

AskPosition ==
    LET s       == read.at
        all     == IF Asked[read.step + 1] = "done" THEN server[s].done
                   ELSE IF "ownedCounts" \in Rules THEN server[s].owned ELSE {}
        numbers == read.numbers \cup Numbers(all, read.of.name)
    IN  /\ read # NoRead
        /\ IF read.step = 0
           THEN read' = [read EXCEPT !.step = 1, !.numbers = numbers] /\ UNCHANGED told
           ELSE /\ read' = NoRead
                /\ told' = told \cup
                    {[write |-> read.of.write, name |-> read.of.name, number |-> Greatest(numbers)]}
        /\ UNCHANGED <<server, spent>>

Next ==
    \/ \E s \in Servers :
        \/ Write(s) \/ Take(s) \/ Show(s) \/ Finish(s) \/ Promote(s) \/ BeginRead(s)
        \/ \E p \in Servers : Follow(s, p) \/ BuildAnew(s, p)
    \/ AskPosition

Spec == Init /\ [][Next]_vars

Symmetry == Permutations(Servers)

-----------------------------------------------------------------------------
(* The judge. *)

Judge(s, position) ==
    LET there  == Numbers(IF "onlyDone" \in Rules THEN server[s].done ELSE Known(s), position.name)
        others == {each \in server[s].done : each.name # position.name}
        wanted == IF "allUpToIt" \in Rules \/ position.number = 0 THEN 1 .. position.number
                  ELSE {position.number}
    IN  IF wanted \subseteq there THEN "visible"
        ELSE IF "setHasNoOrder" \in Rules \/ others = {} THEN "not yet"
        ELSE "unproven"

(* What has to hold. *)

\* Where a position is visible, so are the writes of all positions of that name that it covers.
NeverFalselyVisible ==
    \A s \in Servers : \A one, other \in told :
        (/\ Judge(s, one) = "visible"
         /\ other.name = one.name /\ other.number <= one.number)
            => Has(s, other.write)

\* No primary that the server can go on from has the write.
UnprovenIsFinal ==
    \A r, p \in Servers : \A each \in told :
        (/\ Judge(r, each) = "unproven"
         /\ server[p].primary /\ CanGoOn(r, p))
            => ~Has(p, each.write)
=============================================================================
