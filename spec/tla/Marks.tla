------------------------------- MODULE Marks -------------------------------
(***************************************************************************)
(* What a server may say of a position: epochs and marks (EPOCH-1 to 4,    *)
(* 9 to 17, 24, 29, 33).                                                   *)
(*                                                                         *)
(* A store has some servers.  Each holds a log.  A primary appends to its  *)
(* own; a replica copies the log of its source, record by record.          *)
(* Promotion, restart and restore begin a new epoch.  Nobody tells the old *)
(* primary: it may be cut off and go on to write in the old epoch.  Each   *)
(* write gives its writer a position.  A reader asks a server of a         *)
(* position, and hears visible, not yet or unproven.                       *)
(*                                                                         *)
(* The store is like Redis, which forgets most: a server remembers one     *)
(* epoch before its own, a partial resynchronisation brings the name of    *)
(* the epoch before the data, and a restart from an append-only file       *)
(* counts from 0 again.  A rule that is sound here is sound where servers  *)
(* remember more.                                                          *)
(*                                                                         *)
(* Not here: stores whose own history decides (Timelines, Sets), time      *)
(* (EPOCH-13 gives up at a deadline and never passes; how often marks are  *)
(* written, EPOCH-19 and 20), and eviction of marks (EPOCH-21): a mark     *)
(* that is gone makes a reader wait, and nothing visible.                  *)
(*                                                                         *)
(* Rules are those in force; without one of them TLC has to find what goes *)
(* wrong.  Faults are what may happen to the servers.                      *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Servers,     \* a set of model values
    MaxWrites,   \* the most writes,
    MaxMarks,    \* marks and settlements together,
    MaxEpoch,    \* changes of history, each with an epoch of its own behind epoch 0,
    MaxFollows,  \* and times that a server is pointed to a primary
    Faults,
    Rules

AllFaults == {"promote", "follow", "rdb", "aof", "replicaRestart", "failedSync", "settle"}

AllRules == {
    "positionInReply",  \* EPOCH-1: the reply to the write gives the position
    "sameEpochAfter",   \* or another reply does, and counts where its epoch is the one before the write
    "epochInReply",     \* EPOCH-2: the epoch comes with the position, and not from the connection's memory
    "marksProve",       \* EPOCH-10: what a mark that the server has says of an epoch is there
    "unlikeEpochs",     \* EPOCH-14: counters of two epochs are not compared
    "unknownWaits",     \* EPOCH-12: of an epoch that the server does not know it says not yet
    "endNeedsMark",     \* EPOCH-11: an epoch has ended only behind a mark of the server's own epoch
    "markInLog",        \* EPOCH-16: a mark is a record of the store and travels in the log,
    "markAtOnce",       \* EPOCH-16: and one step reads the position and writes the mark
    "markOwn",          \* EPOCH-17: it says what its server proved, and not what the process was told
    "settleEnds",       \* EPOCH-24: an operator settles an epoch up to a counter, and not the whole of it
    "newNames",         \* EPOCH-29: two histories have two names
    "unbroken",         \* EPOCH-33: the word on the epoch before counts while its data are there
    "emptiedIsNowhere"  \* EPOCH-33: nor does the position of a server whose full copy failed count
    }

ASSUME Faults \subseteq AllFaults /\ Rules \subseteq AllRules

Epochs       == 0 .. MaxEpoch
None         == -1
TheWhole     == 99  \* greater than any counter
SaysNothing  == [e \in Epochs |-> None]
NothingKnown == [epoch |-> None, end |-> None]

VARIABLES
    server,   \* server[s]: see Beginning
    backup,   \* a snapshot of one server, with its place
    told,     \* the positions that writers were given, each with the number of its write
    untold,   \* writes whose position is still to be read (without positionInReply)
    aside,    \* what only mutants have: see Init
    spent     \* how much of the bounds is used

vars == <<server, backup, told, untold, aside, spent>>

Most == [writes |-> MaxWrites, marks |-> MaxMarks, epochs |-> MaxEpoch, follows |-> MaxFollows]

Spend(what) == spent[what] < Most[what] /\ spent' = [spent EXCEPT ![what] = @ + 1]

Greater(a, b) == IF a > b THEN a ELSE b

Position(s) == server[s].base + Len(server[s].log)

Has(s, write) == \E i \in DOMAIN server[s].log : server[s].log[i].write = write

\* A record is a write, which has a number, or a mark, which has 0.
ARecord(write, says, by) == [write |-> write, says |-> says, by |-> by]
AWrite(number)           == ARecord(number, SaysNothing, None)
AMark(says, s)           == ARecord(0, says, server[s].epoch)

Appended(s, record) == [server EXCEPT ![s].log = Append(@, record)]

-----------------------------------------------------------------------------
(* The judge. *)

RECURSIVE MarkIn(_, _, _)
MarkIn(log, e, i) == IF i = 0 THEN None ELSE Greater(log[i].says[e], MarkIn(log, e, i - 1))

Mark(s, e) ==
    Greater(MarkIn(server[s].log, e, Len(server[s].log)), aside.marks[e])

\* Epoch e is wholly at s up to this counter (EPOCH-10).
Reached(s, e) ==
    LET marked == IF "marksProve" \in Rules THEN Mark(s, e) ELSE None
        own    == IF server[s].epoch = e /\ ~(server[s].emptied /\ "emptiedIsNowhere" \in Rules)
                  THEN Position(s) ELSE None
        before == IF server[s].before.epoch = e THEN server[s].before.end ELSE None
    IN  Greater(marked, Greater(own, before))

Judge(s, position) ==
    LET e == position.epoch
    IN  IF "unlikeEpochs" \notin Rules
        THEN IF position.counter <= Position(s) THEN "visible" ELSE "not yet"
        ELSE IF position.counter <= Reached(s, e) THEN "visible"
        ELSE IF e = server[s].epoch THEN "not yet"
        ELSE IF Reached(s, e) = None THEN IF "unknownWaits" \in Rules THEN "not yet" ELSE "unproven"
        ELSE IF "endNeedsMark" \notin Rules \/ Mark(s, server[s].epoch) # None THEN "unproven"
        ELSE "not yet"

-----------------------------------------------------------------------------
(* Writes and marks. *)

Beginning(s, first) ==
    [log     |-> <<>>,          \* the records that it has, oldest first
     base    |-> 0,             \* where the log begins: base + Len(log) is the position
     epoch   |-> 0,             \* the history that it says it follows
     before  |-> NothingKnown,  \* the epoch that it continued, and up to where it has that
     primary |-> s = first,     \* it takes writes
     source  |-> first,         \* it copies from there
     emptied |-> FALSE]         \* a full copy failed behind its flush

Init ==
    /\ \E first \in Servers : server = [s \in Servers |-> Beginning(s, first)]
    /\ backup = [log |-> <<>>, base |-> 0, epoch |-> 0]
    /\ told = {} /\ untold = {}
    /\ aside = [epoch |-> [s \in Servers |-> 0],           \* what a connection remembers
                draft |-> [epoch |-> None, counter |-> 0], \* a mark that was read and is not written yet
                marks |-> SaysNothing]                     \* marks that are in no log
    /\ spent = [writes |-> 0, marks |-> 0, epochs |-> 0, follows |-> 0]

Write(p) ==
    LET number == spent.writes + 1
    IN  /\ server[p].primary /\ Spend("writes")
        /\ server' = Appended(p, AWrite(number))
        /\ IF "positionInReply" \in Rules
           THEN /\ told' = told \cup
                    {[write |-> number, counter |-> Position(p) + 1,
                      epoch |-> IF "epochInReply" \in Rules THEN server[p].epoch ELSE aside.epoch[p]]}
                /\ UNCHANGED untold
           ELSE /\ untold' = untold \cup {[write |-> number, at |-> p, epoch |-> server[p].epoch]}
                /\ UNCHANGED told
    /\ UNCHANGED <<backup, aside>>

\* A second reply on the same connection gives an upper bound (EPOCH-4).
Tell(each) ==
    /\ server[each.at].primary
    /\ "sameEpochAfter" \in Rules => server[each.at].epoch = each.epoch
    /\ untold' = untold \ {each}
    /\ told' = told \cup
        {[write |-> each.write, epoch |-> server[each.at].epoch, counter |-> Position(each.at)]}
    /\ UNCHANGED <<server, backup, aside, spent>>

\* The connection is made anew and learns the epoch; between times it remembers it.
Reconnect(p) ==
    /\ "epochInReply" \notin Rules
    /\ aside.epoch[p] # server[p].epoch
    /\ aside' = [aside EXCEPT !.epoch[p] = server[p].epoch]
    /\ UNCHANGED <<server, backup, told, untold, spent>>

\* The greatest counter of e that any writer was told.
LastTold(e) ==
    LET counters == {None} \cup {each.counter : each \in {some \in told : some.epoch = e}}
    IN  CHOOSE last \in counters : \A each \in counters : each <= last

\* A primary says where it is itself, and up to where it has the epoch before.
Says(p) ==
    [e \in Epochs |->
        IF e = server[p].epoch THEN Position(p)
        ELSE IF e # server[p].before.epoch THEN None
        ELSE IF "markOwn" \in Rules THEN server[p].before.end
        ELSE Greater(server[p].before.end, LastTold(e))]

WriteMark(p) ==
    /\ server[p].primary /\ Spend("marks")
    /\ "markAtOnce" \in Rules
    /\ IF "markInLog" \in Rules
       THEN server' = Appended(p, AMark(Says(p), p)) /\ UNCHANGED aside
       ELSE aside' = [aside EXCEPT !.marks = [e \in Epochs |-> Greater(@[e], Says(p)[e])]] /\ UNCHANGED server
    /\ UNCHANGED <<backup, told, untold>>

\* The mutant's two steps.
ReadMark(p) ==
    /\ "markAtOnce" \notin Rules
    /\ server[p].primary /\ aside.draft.epoch = None
    /\ aside' = [aside EXCEPT !.draft = [epoch |-> server[p].epoch, counter |-> Position(p)]]
    /\ UNCHANGED <<server, backup, told, untold, spent>>

WriteDraft(p) ==
    /\ server[p].primary /\ aside.draft.epoch # None /\ Spend("marks")
    /\ server' = Appended(p, AMark([SaysNothing EXCEPT ![aside.draft.epoch] = aside.draft.counter], p))
    /\ aside' = [aside EXCEPT !.draft.epoch = None]
    /\ UNCHANGED <<backup, told, untold>>

\* An operator settles an epoch at a primary.  He has looked: all that anybody was told of is there.
Settle(p, e) ==
    LET positions == {each \in told : each.epoch = e}
        end       == IF "settleEnds" \in Rules THEN LastTold(e) ELSE TheWhole
    IN  /\ "settle" \in Faults
        /\ server[p].primary /\ e # server[p].epoch
        /\ positions # {} /\ \A each \in positions : Has(p, each.write)
        /\ Spend("marks")
        /\ server' = Appended(p, AMark([SaysNothing EXCEPT ![e] = end], p))
        /\ UNCHANGED <<backup, told, untold, aside>>

-----------------------------------------------------------------------------
(* What servers do, and what happens to them. *)

Replicate(r) ==
    LET p == server[r].source
    IN  /\ ~server[r].primary /\ server[p].primary /\ ~server[r].emptied
        /\ server[r].epoch = server[p].epoch /\ Position(r) < Position(p)
        /\ server' = Appended(r, server[p].log[Len(server[r].log) + 1])
        /\ UNCHANGED <<backup, told, untold, aside, spent>>

\* The name of the epoch that begins at s.
NewName(s) == IF "newNames" \in Rules THEN spent.epochs + 1 ELSE server[s].epoch + 1

Begins(s, changed) ==
    /\ NewName(s) <= MaxEpoch
    /\ spent' = [spent EXCEPT !.epochs = Greater(@, NewName(s))]
    /\ server' = [server EXCEPT ![s] = [changed EXCEPT !.epoch = NewName(s), !.primary = TRUE, !.emptied = FALSE]]
    /\ UNCHANGED <<backup, told, untold, aside>>

Promote(r) ==
    /\ "promote" \in Faults /\ ~server[r].primary
    /\ Begins(r, [server[r] EXCEPT !.before =
        IF server[r].emptied /\ "unbroken" \in Rules THEN NothingKnown
        ELSE [epoch |-> server[r].epoch, end |-> Position(r)]])

\* A primary starts from a snapshot that knows its place, or from data that know none: its own
\* append-only file, or an old backup.
RestartRdb(s) ==
    /\ "rdb" \in Faults
    /\ Begins(s, [server[s] EXCEPT
        !.log = backup.log, !.base = backup.base,
        !.before = [epoch |-> backup.epoch, end |-> backup.base + Len(backup.log)]])

RestartAof(s) ==
    /\ "aof" \in Faults
    /\ \E records \in {server[s].log, backup.log} :
        Begins(s, [server[s] EXCEPT !.log = records, !.base = -Len(records), !.before = NothingKnown])

\* A replica starts again from a snapshot: visibility goes back (EPOCH-15).
RestartReplica(r) ==
    /\ "replicaRestart" \in Faults /\ ~server[r].primary
    /\ server[r].log # backup.log \/ server[r].epoch # backup.epoch
    /\ server' = [server EXCEPT ![r] = [@ EXCEPT
        !.log = backup.log, !.base = backup.base, !.epoch = backup.epoch, !.before = NothingKnown,
        !.emptied = FALSE]]
    /\ UNCHANGED <<backup, told, untold, aside, spent>>

Save(s) ==
    /\ Faults \cap {"rdb", "aof", "replicaRestart"} # {}
    /\ ~server[s].emptied /\ backup.log # server[s].log
    /\ backup' = [log |-> server[s].log, base |-> server[s].base, epoch |-> server[s].epoch]
    /\ UNCHANGED <<server, told, untold, aside, spent>>

\* Where the primary knows the server's place the server goes on from there, and has the primary's
\* epoch at once; else it is emptied and filled anew.
CanGoOn(r, p) ==
    /\ ~server[r].emptied
    /\ \/ server[r].epoch = server[p].epoch /\ Position(r) <= Position(p)
       \/ server[r].epoch = server[p].before.epoch /\ Position(r) <= server[p].before.end

Follow(r, p) ==
    LET pointed == [server[r] EXCEPT !.primary = FALSE, !.source = p, !.epoch = server[p].epoch]
    IN  /\ "follow" \in Faults /\ r # p /\ server[p].primary /\ Spend("follows")
        /\ server' = [server EXCEPT ![r] =
            IF ~CanGoOn(r, p)
            THEN [pointed EXCEPT !.log = server[p].log, !.base = server[p].base, !.before = NothingKnown,
                                 !.emptied = FALSE]
            ELSE IF server[r].epoch = server[p].epoch THEN pointed
            ELSE [pointed EXCEPT !.before = [epoch |-> server[r].epoch, end |-> Position(r)]]]
        /\ UNCHANGED <<backup, told, untold, aside>>

\* A full copy fails when the data are gone: the position and its epoch stay.
FailCopy(r) ==
    /\ "failedSync" \in Faults /\ ~server[r].primary /\ ~server[r].emptied /\ server[r].log # <<>>
    /\ server' = [server EXCEPT ![r] = [@ EXCEPT
        !.base = Position(r), !.log = <<>>, !.emptied = TRUE, !.before = NothingKnown]]
    /\ UNCHANGED <<backup, told, untold, aside, spent>>

Next ==
    \/ \E s \in Servers :
        \/ Write(s) \/ Reconnect(s) \/ WriteMark(s) \/ ReadMark(s) \/ WriteDraft(s)
        \/ Replicate(s) \/ Promote(s) \/ FailCopy(s) \/ Save(s)
        \/ RestartRdb(s) \/ RestartAof(s) \/ RestartReplica(s)
        \/ \E p \in Servers : Follow(s, p)
        \/ \E e \in 0 .. spent.epochs : Settle(s, e)
    \/ \E each \in untold : Tell(each)

Spec == Init /\ [][Next]_vars

Symmetry == Permutations(Servers)

-----------------------------------------------------------------------------
(* What has to hold. *)

\* No false pass: what is visible at a server is in its log.
NeverFalselyVisible ==
    \A s \in Servers : \A each \in told : Judge(s, each) = "visible" => Has(s, each.write)

\* Unproven at once is right: no primary that the server can go on from has the write.  (It may be
\* filled anew from elsewhere; then it is another server.)
UnprovenIsFinal ==
    \A r, p \in Servers : \A each \in told :
        (server[p].primary /\ CanGoOn(r, p) /\ ~Has(r, each.write) /\ Has(p, each.write))
            => Judge(r, each) # "unproven"

\* A write that is there is visible behind a mark that its own epoch's primary wrote after it,
SurvivorIsVisible ==
    \A s \in Servers : \A each \in told : \A i, j \in DOMAIN server[s].log :
        (/\ i < j /\ server[s].log[i].write = each.write
         /\ server[s].log[j].by = each.epoch /\ server[s].log[j].says[each.epoch] # None)
            => Judge(s, each) = "visible"

\* and behind one of the next primary, where that remembers the epoch.
HeirKnowsSurvivor ==
    \A s \in Servers : \A each \in told : \A i, j \in DOMAIN server[s].log :
        (/\ i < j /\ server[s].log[i].write = each.write
         /\ server[s].log[j].write = 0 /\ server[s].log[j].by = each.epoch + 1
         /\ server[s].log[j].says[each.epoch] \notin {None, TheWhole})
            => Judge(s, each) = "visible"

\* More than the rules promise: any mark behind the write would do.  TLC has to refute it.  A write
\* after its epoch's last mark, at a primary that starts from a file that tells no place, is there
\* and unproven for ever: the exposure that EPOCH-19 keeps to one second of writes.
AnyMarkWillDo ==
    \A s \in Servers : \A each \in told : \A i, j \in DOMAIN server[s].log :
        (i < j /\ server[s].log[i].write = each.write /\ server[s].log[j].write = 0)
            => Judge(s, each) # "unproven"

-----------------------------------------------------------------------------
(* What the judge was asked, for vectors that every language runs (judged.py). *)

Judged(s, each) ==
    <<"judged", server[s].epoch, IF server[s].emptied THEN None ELSE Position(s),
      server[s].before.epoch, server[s].before.end, [e \in Epochs |-> Mark(s, e)],
      each.epoch, each.counter, Judge(s, each)>>

\* Always true: each question is printed once.
TellsWhatIsJudged ==
    \A s \in Servers : \A each \in told :
        LET judged == Judged(s, each)
        IN  \/ judged \in TLCGet(1)
            \/ PrintT(judged) /\ TLCSet(1, TLCGet(1) \cup {judged})

ASSUME TLCSet(1, {})
=============================================================================
