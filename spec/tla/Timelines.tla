----------------------------- MODULE Timelines -----------------------------
(***************************************************************************)
(* What a server says of a position where its own history decides, as      *)
(* PostgreSQL's timelines do (EPOCH-28, 29).                               *)
(*                                                                         *)
(* A promotion begins a timeline, whose number is the next one that the    *)
(* server knows of; so two servers that are promoted apart begin two of    *)
(* one number.  The history of a timeline names those before it, each with *)
(* its end.  The first record of a timeline is its word, which nobody else *)
(* has.  A standby gets the history of its primary when it is attached,    *)
(* long before the data; while it is attached nowhere it may be on any of  *)
(* those that it ever got.                                                 *)
(*                                                                         *)
(* A reader asks how far the server is, which histories it may be on and   *)
(* which words it has.  These are three questions; anything may happen     *)
(* between them.                                                           *)
(*                                                                         *)
(* Not here: the table of words that is not there, rights that hide the    *)
(* history, what an operator settled, a standby that follows a standby.    *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Servers,        \* a set of model values
    MaxWrites,
    MaxPromotions,
    MaxMoves,       \* so many times a standby is attached to a primary or detached, or a server is built anew
    Rules

AllRules == {
    "endsCount",    \* EPOCH-28: beyond the end of its timeline a position is not there,
    "endsInOrder",  \* nor beyond the end of a later one: see Promote
    "newerWaits",   \* EPOCH-28: of a newer timeline it is not yet
    "placeFirst",   \* EPOCH-28: how far the server is is asked before its history
    "holdsInAll",   \* EPOCH-28: where it may be on several histories, what holds in all of them
    "wordsCount",   \* EPOCH-29: a timeline is its number and its word
    "wordFirst",    \* EPOCH-29: the word is in the log before any position that names it
    "wordsLast"     \* EPOCH-29: words are asked after how far the server is
    }

ASSUME Rules \subseteq AllRules

None      == 0
Timelines == 1 .. MaxPromotions + 1
NoEnd     == -1
ForEver   == 99

VARIABLES
    server,  \* server[s]: its log, its history, those that it ever got, the primary it is attached to, and
             \* the word that its positions name
    told,    \* the positions that writers were given
    look,    \* what a reader has asked so far
    spent

vars == <<server, told, look, spent>>

TheFirst == [timeline |-> 1, ends |-> [t \in Timelines |-> NoEnd]]
NoLook   == [at |-> None, step |-> 0, place |-> 0, histories |-> {}, words |-> {}, coming |-> {}]

Init ==
    /\ \E first \in Servers : server = [s \in Servers |->
        [log |-> <<>>, history |-> TheFirst, files |-> {TheFirst}, primary |-> s = first,
         source |-> IF s = first THEN None ELSE first, word |-> None]]
    /\ told = {} /\ look = NoLook
    /\ spent = [writes |-> 0, promotions |-> 0, moves |-> 0]

Most == [writes |-> MaxWrites, promotions |-> MaxPromotions, moves |-> MaxMoves]

Spend(what) == spent[what] < Most[what] /\ spent' = [spent EXCEPT ![what] = @ + 1]

AWrite(number)       == [write |-> number, timeline |-> None, word |-> None]
AWord(timeline, word) == [write |-> None, timeline |-> timeline, word |-> word]

Place(s)      == Len(server[s].log)
Has(s, write) == \E i \in DOMAIN server[s].log : server[s].log[i].write = write

\* The server can go on from this primary: what it has is the beginning of what that has.
CanGoOn(s, p) == Place(s) <= Place(p) /\ server[s].log = SubSeq(server[p].log, 1, Place(s))

-----------------------------------------------------------------------------
(* The servers. *)

Write(p) ==
    LET number == spent.writes + 1
    IN  /\ server[p].primary /\ Spend("writes")
        /\ server' = [server EXCEPT ![p].log = Append(@, AWrite(number))]
        /\ told' = told \cup {[write |-> number, timeline |-> server[p].history.timeline,
                               word |-> server[p].word, counter |-> Place(p) + 1]}
        /\ UNCHANGED look

Replicate(r) ==
    LET p == server[r].source
    IN  /\ p # None /\ Place(r) < Place(p)
        /\ server' = [server EXCEPT ![r].log = Append(@, server[p].log[Place(r) + 1])]
        /\ UNCHANGED <<told, look, spent>>

\* Its own timeline's number is the next one of which it has a file.  The new history is the one that
\* it was attached for, with its place as that one's end; also where it had not come to the end of the
\* timeline before: then a later end is smaller than an earlier one.
Promote(r) ==
    LET ended    == server[r].history
        timeline == 1 + CHOOSE n \in Timelines :
            /\ \E file \in server[r].files : file.timeline = n
            /\ \A file \in server[r].files : file.timeline <= n
        history  == [timeline |-> timeline, ends |-> [ended.ends EXCEPT ![ended.timeline] = Place(r)]]
        word     == spent.promotions + 1
    IN  /\ ~server[r].primary /\ Spend("promotions")
        /\ server' = [server EXCEPT ![r] = [@ EXCEPT
            !.primary = TRUE, !.source = None, !.history = history, !.files = @ \cup {history}, !.word = word,
            !.log = IF "wordFirst" \in Rules THEN Append(@, AWord(timeline, word)) ELSE @]]
        /\ UNCHANGED <<told, look>>

\* Without wordFirst it comes some time later.
WriteWord(p) ==
    LET word == AWord(server[p].history.timeline, server[p].word)
    IN  /\ "wordFirst" \notin Rules /\ server[p].primary /\ server[p].word # None
        /\ \A i \in DOMAIN server[p].log : server[p].log[i] # word
        /\ server' = [server EXCEPT ![p].log = Append(@, word)]
        /\ UNCHANGED <<told, look, spent>>

Attach(r, p) ==
    /\ ~server[r].primary /\ server[p].primary /\ server[r].source # p /\ CanGoOn(r, p)
    /\ Spend("moves")
    /\ server' = [server EXCEPT ![r] = [@ EXCEPT
        !.source = p, !.history = server[p].history, !.files = @ \cup {server[p].history}]]
    /\ UNCHANGED <<told, look>>

Detach(r) ==
    /\ server[r].source # None /\ Spend("moves")
    /\ server' = [server EXCEPT ![r].source = None]
    /\ UNCHANGED <<told, look>>

\* A copy of a primary, or what is rewound to one.  Who was attached to it is so no more, and a
\* reader's connection is broken.
BuildAnew(s, p) ==
    /\ s # p /\ server[p].primary /\ server[s].log # server[p].log /\ Spend("moves")
    /\ server' = [t \in Servers |->
        IF t = s THEN [server[p] EXCEPT !.primary = FALSE, !.source = p]
        ELSE IF server[t].source = s THEN [server[t] EXCEPT !.source = None] ELSE server[t]]
    /\ look' = IF look.at = s THEN NoLook ELSE look
    /\ UNCHANGED told

-----------------------------------------------------------------------------
(* The reader. *)

Order ==
    IF "placeFirst" \notin Rules THEN <<"history", "place", "words">>
    ELSE IF "wordsLast" \notin Rules THEN <<"words", "place", "history">>
    ELSE <<"place", "history", "words">>

Ended(l) == l.step = Len(Order)

MayBeOn(s) ==
    IF server[s].primary \/ server[s].source # None THEN {server[s].history} ELSE server[s].files

\* What is there, or may come from a primary that it follows or may follow, or from an heir of that.
ThereOrComing(s) ==
    {each \in 1 .. spent.writes :
        \/ Has(s, each)
        \/ \E p \in Servers :
            /\ server[p].primary /\ Has(p, each) /\ CanGoOn(s, p)
            /\ \E history \in MayBeOn(s) :
                server[p].history = history \/ server[p].history.ends[history.timeline] # NoEnd}

Look(s) ==
    LET asked == Order[look.step + 1]
        log   == server[s].log
    IN  /\ look.at \in {None, s} /\ ~Ended(look)
        /\ look' = [look EXCEPT
            !.at = s, !.step = @ + 1,
            !.place = IF asked = "place" THEN Place(s) ELSE @,
            !.histories = IF asked = "history" THEN MayBeOn(s) ELSE @,
            !.coming = IF asked = "history" THEN ThereOrComing(s) ELSE @,
            !.words = IF asked = "words" THEN {log[i] : i \in DOMAIN log} ELSE @]
        /\ UNCHANGED <<server, told, spent>>

Next ==
    \E s \in Servers :
        \/ Write(s) \/ Replicate(s) \/ Promote(s) \/ WriteWord(s) \/ Detach(s) \/ Look(s)
        \/ \E p \in Servers : Attach(s, p) \/ BuildAnew(s, p)

Spec == Init /\ [][Next]_vars

Symmetry == Permutations(Servers)

\* A constraint: one look is like another.
StillAsking == ~Ended(look)

-----------------------------------------------------------------------------
(* The judge. *)

\* "same", "other" or "none": the word of the position's timeline, as the reader saw it.
Word(position) ==
    LET words == {each.word : each \in {some \in look.words : some.timeline = position.timeline}}
    IN  IF "wordsCount" \notin Rules \/ position.timeline = 1 \/ position.word \in words THEN "same"
        ELSE IF words = {} THEN "none" ELSE "other"

End(history, timeline) ==
    LET ends  == history.ends
        later == {t \in Timelines : t = timeline \/ (t > timeline /\ ends[t] # NoEnd /\ "endsInOrder" \in Rules)}
    IN  IF timeline = history.timeline THEN ForEver
        ELSE IF ends[timeline] = NoEnd THEN NoEnd
        ELSE CHOOSE end \in {ends[t] : t \in later} : \A t \in later : end <= ends[t]

JudgeIn(history, position) ==
    LET end == End(history, position.timeline)
    IN  IF position.timeline > history.timeline
        THEN IF "newerWaits" \in Rules THEN "not yet" ELSE "unproven"
        ELSE IF "endsCount" \in Rules /\ position.counter > end THEN "unproven"
        ELSE IF Word(position) = "other" THEN "unproven"
        ELSE IF look.place < position.counter THEN "not yet"
        ELSE IF Word(position) = "none" THEN "unproven"
        ELSE "visible"

Judge(position) ==
    LET answers == {JudgeIn(history, position) : history \in look.histories}
    IN  IF Cardinality(answers) = 1 THEN CHOOSE answer \in answers : TRUE
        ELSE IF "holdsInAll" \notin Rules /\ "visible" \in answers THEN "visible"
        ELSE "not yet"

-----------------------------------------------------------------------------
(* What has to hold when a reader has asked all three. *)

NeverFalselyVisible ==
    Ended(look) => \A each \in told : Judge(each) = "visible" => Has(look.at, each.write)

\* The write may be at s, now or later, whatever that is attached to.
MayCome(s, write) ==
    Has(s, write) \/ \E p \in Servers : server[p].primary /\ CanGoOn(s, p) /\ Has(p, write)

\* It did not come from what the server might follow when it was asked for its history; or it can come
\* no more, from anywhere.
UnprovenIsFinal ==
    Ended(look) => \A each \in told : Judge(each) = "unproven" =>
        each.write \notin look.coming \/ ~MayCome(look.at, each.write)

\* More than the rules promise: nor anywhere else that the server could still be attached to.  TLC has
\* to refute it: a server that is attached to one of two heirs, and has not come to where they part,
\* may be attached to the other.
UnprovenWhateverItFollows ==
    Ended(look) => \A each \in told : Judge(each) = "unproven" => ~MayCome(look.at, each.write)

\* Who has all that its primary has says of each write whether it is there.
CaughtUpKnows ==
    (/\ Ended(look) /\ server[look.at].source # None
     /\ look.place = Place(server[look.at].source) /\ look.histories = MayBeOn(look.at))
        => \A each \in told : Has(look.at, each.write) => Judge(each) = "visible"
=============================================================================
