------------------------------ MODULE Barrier ------------------------------
(***************************************************************************)
(* When a barrier over several servers may pass, and when the free path    *)
(* may (BAR-11, 24, 25, 27, 33 to 36), and the rule of the moment          *)
(* (BAR-63).                                                               *)
(*                                                                         *)
(* One write is wanted at every server of the reach.  The engine asks each *)
(* server, one question at a time; an answer that shows the write is a     *)
(* proof, which has an age.  A server may lose the write again: somebody   *)
(* points it to another primary, or it restarts.  A push channel says so a *)
(* little later, unless it is deaf: broken, and nobody knows.  Time goes   *)
(* by in ticks; all else takes none.                                       *)
(*                                                                         *)
(* Not here: what an answer is made from (Marks), threads (Reopen), and    *)
(* servers that are left out (LeftOut).                                    *)
(*                                                                         *)
(* The moment.  To ask that each proof is young when the last need is      *)
(* settled is safe, and lets nobody pass where a round trip is longer than *)
(* Ttl (the mutant without moment).  So ages count back from M, the asking *)
(* of the question that settled the last open need: what is asked after M  *)
(* is young enough whenever its answer arrives, and one more round is      *)
(* enough.                                                                 *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    Servers,     \* a set of model values
    Ttl,         \* free_path_ttl
    MinFlight,   \* a question and its answer take so long at least,
    MaxFlight,   \* and so long at most; then they count as failed
    PushDelay,   \* a push arrives within so many ticks
    MaxFaults,   \* so many times a server loses the write or a channel goes deaf
    Exposure,    \* what is stated: a pass may be so many ticks behind
    Channels,    \* TRUE: there are push channels
    Rules

AllRules == {
    "standsAtEnd",    \* a barrier passes by proofs that stand at its end (else what was settled stays settled)
    "moment",         \* and their ages count back from M
    "reopens",        \* what drops a proof opens its need again, and M with it
    "asksAtOnce",     \* and a server whose need is settled by what does not stand is asked again at once
    "agesFromAsking", \* an age counts from the asking, and not from the answer
    "channelFirst",   \* a channel keeps a proof only if it was open before the question was asked
    "pushDrops",      \* BAR-33: a push that data were replaced drops the server's proof,
    "overtaken",      \* BAR-33: and the answer that is on its way
    "ownProof"        \* BAR-25, BAR-36: a server is proved by its own answers alone
    }

ASSUME Rules \subseteq AllRules

None       == -1
NoQuestion == [step |-> "none", shows |-> FALSE, age |-> 0, overtaken |-> FALSE, channel |-> FALSE]
NoProof    == [age |-> None, kept |-> FALSE, settled |-> FALSE]
Least(a, b)   == IF a < b THEN a ELSE b
Greater(a, b) == IF a > b THEN a ELSE b

\* Greater numbers make no difference.
Long      == Exposure + 1
OldMoment == 4 * MaxFlight
OldProof  == Ttl + 1 + OldMoment

VARIABLES
    data,      \* data[s]: s has the write; how long it has been gone
    channel,   \* channel[s]: "none", "open" or "deaf"; how long ago it answered; the age of a push on its way
    question,  \* question[s]: what is asked now
    proof,     \* proof[s]: its age; a channel has been open since before its question; the need is settled
    moment,    \* how long ago M was, or None while a need is open
    phase,     \* of the barrier: "waits", "passes" until time goes on, "over"
    faults

vars == <<data, channel, question, proof, moment, phase, faults>>

-----------------------------------------------------------------------------
(* What the engine believes. *)

ChannelLives(s) == channel[s].state # "none" /\ channel[s].heard <= Ttl

\* The proof of s is young enough, where ages count back from a time that was so long ago; or a
\* channel keeps it.
Stands(s, ago) ==
    /\ proof[s].age # None
    /\ \/ proof[s].age <= Ttl + ago
       \/ ChannelLives(s) /\ ("channelFirst" \in Rules => proof[s].kept)

\* BAR-34, BAR-35: a new barrier would pass now, and ask nobody.
FreePath == \A s \in Servers : Stands(s, 0)

MayPass ==
    /\ \A s \in Servers : proof[s].settled
    /\ "standsAtEnd" \in Rules =>
        \A s \in Servers : Stands(s, IF "moment" \in Rules THEN Greater(moment, 0) ELSE 0)

Init ==
    /\ data = [s \in Servers |-> [has |-> FALSE, gone |-> Long]]
    /\ channel = [s \in Servers |-> [state |-> "none", heard |-> 0, push |-> None]]
    /\ question = [s \in Servers |-> NoQuestion]
    /\ proof = [s \in Servers |-> NoProof]
    /\ moment = None /\ phase = "waits" /\ faults = 0

-----------------------------------------------------------------------------
(* What happens to the servers. *)

Apply(s) ==
    /\ ~data[s].has
    /\ data' = [data EXCEPT ![s] = [has |-> TRUE, gone |-> 0]]
    /\ UNCHANGED <<channel, question, proof, moment, phase, faults>>

Lose(s) ==
    /\ data[s].has /\ faults < MaxFaults
    /\ data' = [data EXCEPT ![s] = [has |-> FALSE, gone |-> 0]]
    /\ channel' = [channel EXCEPT ![s].push = IF channel[s].state = "open" /\ @ = None THEN 0 ELSE @]
    /\ faults' = faults + 1
    /\ UNCHANGED <<question, proof, moment, phase>>

GoDeaf(s) ==
    /\ channel[s].state = "open" /\ faults < MaxFaults
    /\ channel' = [channel EXCEPT ![s] = [@ EXCEPT !.state = "deaf", !.push = None]]
    /\ faults' = faults + 1
    /\ UNCHANGED <<data, question, proof, moment, phase>>

-----------------------------------------------------------------------------
(* What the engine does. *)

\* A channel that is opened, or opened again, keeps no proof whose question was asked before.
OpenChannel(s) ==
    /\ Channels
    /\ channel[s].state = "none" \/ (channel[s].state = "deaf" /\ ~ChannelLives(s))
    /\ channel' = [channel EXCEPT ![s] = [state |-> "open", heard |-> 0, push |-> None]]
    /\ proof' = [proof EXCEPT ![s].kept = FALSE]
    /\ question' = [question EXCEPT ![s].channel = FALSE]
    /\ UNCHANGED <<data, moment, phase, faults>>

\* Its sign of life comes behind the pushes that were sent before: one connection, first in first out.
ChannelAnswers(s) ==
    /\ channel[s].state = "open" /\ channel[s].push = None /\ channel[s].heard > 0
    /\ channel' = [channel EXCEPT ![s].heard = 0]
    /\ UNCHANGED <<data, question, proof, moment, phase, faults>>

\* The proof of s goes, and its need is open again.
Drop(s) ==
    /\ proof' = [proof EXCEPT ![s] = [NoProof EXCEPT !.settled = @ \/ ("reopens" \notin Rules /\ proof[s].settled)]]
    /\ moment' = IF "reopens" \in Rules THEN None ELSE moment

PushArrives(s) ==
    /\ channel[s].push # None
    /\ channel' = [channel EXCEPT ![s].push = None]
    /\ question' = [question EXCEPT ![s].overtaken = question[s].step # "none" /\ "overtaken" \in Rules]
    /\ IF "pushDrops" \in Rules THEN Drop(s) ELSE UNCHANGED <<proof, moment>>
    /\ UNCHANGED <<data, phase, faults>>

Ask(s) ==
    /\ question[s].step = "none"
    /\ question' = [question EXCEPT ![s] =
        [NoQuestion EXCEPT !.step = "asked", !.channel = (channel[s].state # "none" /\ "channelFirst" \in Rules)]]
    /\ UNCHANGED <<data, channel, proof, moment, phase, faults>>

\* The server looks.  From here on the answer is as old as this look.
Look(s) ==
    /\ question[s].step = "asked"
    /\ question' = [question EXCEPT ![s] = [@ EXCEPT !.step = "looked", !.shows = data[s].has]]
    /\ UNCHANGED <<data, channel, proof, moment, phase, faults>>

\* The servers that an answer of s speaks for.
SpeaksFor(s) == IF "ownProof" \in Rules THEN {s} ELSE Servers

Answer(s) ==
    /\ question[s].step = "looked" /\ question[s].age >= MinFlight
    /\ question' = [question EXCEPT ![s] = NoQuestion]
    /\ IF question[s].overtaken THEN UNCHANGED <<proof, moment>>
       ELSE IF ~question[s].shows THEN Drop(s)
       ELSE LET age    == IF "agesFromAsking" \in Rules THEN Least(question[s].age, OldProof) ELSE 0
                proved == [age |-> age, kept |-> question[s].channel, settled |-> phase = "waits"]
                open   == {t \in Servers : ~proof[t].settled}
            IN  /\ proof' = [t \in Servers |-> IF t \in SpeaksFor(s) THEN proved ELSE proof[t]]
                /\ moment' = IF phase = "waits" /\ open # {} /\ open \subseteq SpeaksFor(s)
                             THEN question[s].age ELSE moment
    /\ UNCHANGED <<data, channel, phase, faults>>

\* No answer in time.
Fail(s) ==
    /\ question[s].step # "none" /\ question[s].age >= MaxFlight
    /\ question' = [question EXCEPT ![s] = NoQuestion]
    /\ Drop(s)
    /\ UNCHANGED <<data, channel, phase, faults>>

Pass ==
    /\ phase = "waits" /\ MayPass
    /\ phase' = "passes"
    /\ proof' = [s \in Servers |-> [proof[s] EXCEPT !.settled = FALSE]]
    /\ moment' = None
    /\ UNCHANGED <<data, channel, question, faults>>

\* A barrier that may pass passes at once.  Pushes and questions arrive in their time.
Tick ==
    /\ phase = "waits" =>
        /\ ~MayPass
        /\ ("asksAtOnce" \in Rules /\ \A s \in Servers : proof[s].settled) =>
            \A s \in Servers : Stands(s, Greater(moment, 0)) \/ question[s].step # "none"
    /\ \A s \in Servers : channel[s].push < PushDelay /\ (question[s].step # "none" => question[s].age < MaxFlight)
    /\ data' = [s \in Servers |->
        [data[s] EXCEPT !.gone = IF data[s].has THEN 0 ELSE Least(@ + 1, Long)]]
    /\ channel' = [s \in Servers |->
        [channel[s] EXCEPT !.heard = IF channel[s].state = "none" THEN 0 ELSE Least(@ + 1, Ttl + 1),
                           !.push = IF @ = None THEN None ELSE @ + 1]]
    /\ question' = [s \in Servers |->
        [question[s] EXCEPT !.age = IF question[s].step = "none" THEN 0 ELSE @ + 1]]
    /\ proof' = [s \in Servers |->
        [proof[s] EXCEPT !.age = IF @ = None THEN None ELSE Least(@ + 1, OldProof)]]
    /\ moment' = IF moment = None THEN None ELSE Least(moment + 1, OldMoment)
    /\ phase' = IF phase = "passes" THEN "over" ELSE phase
    /\ UNCHANGED faults

Next ==
    \/ \E s \in Servers :
        \/ Apply(s) \/ Lose(s) \/ GoDeaf(s)
        \/ OpenChannel(s) \/ ChannelAnswers(s) \/ PushArrives(s)
        \/ Ask(s) \/ Look(s) \/ Answer(s) \/ Fail(s)
    \/ Pass \/ Tick

Spec == Init /\ [][Next]_vars

Symmetry == Permutations(Servers)

\* A constraint for the large configurations, which look at the first barrier alone.
TheFirst == phase # "over"

-----------------------------------------------------------------------------
(* What has to hold. *)

\* When a barrier passes every server has the write, or lost it lately.
PassIsSnapshot ==
    phase = "passes" => \A s \in Servers : data[s].has \/ data[s].gone <= Exposure

\* So it is on the free path, whose exposure is smaller.
FreePathIsFresh ==
    FreePath => \A s \in Servers : data[s].has \/ data[s].gone <= Greater(Ttl, PushDelay)

\* One more round is enough: M's own flight, one that was under way, and one.
OneMoreRound == moment <= 3 * MaxFlight

\* Not a law.  TLC has to refute it: a rule that lets nobody pass is safe, and worth nothing.
NobodyPasses == phase # "passes"

=============================================================================
