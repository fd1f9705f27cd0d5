------------------------------- MODULE Reopen -------------------------------
(***************************************************************************)
(* The end of a barrier, step by step, as threads take it (BAR-32, 33 and  *)
(* 63).                                                                    *)
(*                                                                         *)
(* Each server has a thread, which asks it, settles the barrier's need     *)
(* there under the server's present generation, and looks if a need is     *)
(* still open.  A push resets a server at any time: its generation grows   *)
(* and its need is open again.  The deadline ends the barrier, too.  The   *)
(* barrier has to be released exactly once, and not to sleep on where all  *)
(* is proved.                                                              *)
(*                                                                         *)
(* Each action is what one lock covers; between two of them anything may   *)
(* happen.  A lock of one server is never held together with that of       *)
(* another.                                                                *)
(*                                                                         *)
(* Not here: ages (Barrier), and the deadline's time: it may come always.  *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    Servers,    \* a set of model values
    MaxResets,  \* so many at each server
    Rules

AllRules == {
    "compares",    \* who sees no need open compares their generations with those of the servers,
    "comparesCopy",\* and takes for that what it copied in the step that saw none open
    "openIsAState",\* a need is open or not; how many are is no number that threads add to
    "growsFirst",  \* a reset raises the generation before it opens the need
    "asAsked",     \* an answer settles under the generation of its asking, or not at all
    "onlyOnce"     \* one test-and-set decides who releases
    }

ASSUME Rules \subseteq AllRules

Open == -1  \* instead of a generation

VARIABLES
    generation,  \* generation[s]: so often was s reset
    need,        \* need[s]: the generation that it was settled under, or Open
    count,       \* the number of open needs (without openIsAState)
    thread,      \* thread[s]: the step that comes next, and what the thread holds
    reset,       \* reset[s]: "none" or "half done"
    ended,       \* the barrier is answered
    passed,      \* it was answered that it passes
    wakings,     \* so often was its caller woken
    alarm,       \* the deadline: "set" or "over"
    stood        \* some instant had all needs settled, each under the generation of then

vars == <<generation, need, count, thread, reset, ended, passed, wakings, alarm, stood>>

AllStand(needs) == \A s \in Servers : needs[s] = generation[s]

Init ==
    /\ generation = [s \in Servers |-> 0]
    /\ need = [s \in Servers |-> Open] /\ count = Cardinality(Servers)
    /\ thread = [s \in Servers |-> [at |-> "rest", asked |-> 0, rest |-> {}, copy |-> [t \in Servers |-> Open]]]
    /\ reset = [s \in Servers |-> "none"]
    /\ ended = FALSE /\ passed = FALSE /\ wakings = 0 /\ alarm = "set" /\ stood = FALSE

At(s, step)    == thread[s].at = step
GoesTo(s, step) == thread' = [thread EXCEPT ![s].at = step]

Ask(s) ==
    /\ At(s, "rest") /\ need[s] = Open /\ ~ended
    /\ thread' = [thread EXCEPT ![s].at = "asked", ![s].asked = generation[s]]
    /\ UNCHANGED <<generation, need, count, reset, ended, passed, wakings, alarm, stood>>

\* The answer shows the write.
Settle(s) ==
    /\ At(s, "asked")
    /\ IF "asAsked" \in Rules /\ thread[s].asked # generation[s]
       THEN GoesTo(s, "rest") /\ UNCHANGED <<need, count, stood>>
       ELSE /\ need' = [need EXCEPT ![s] = generation[s]]
            /\ count' = count - 1
            /\ stood' = (stood \/ (thread[s].asked = generation[s] /\ AllStand(need')))
            /\ GoesTo(s, "count")
    /\ UNCHANGED <<generation, reset, ended, passed, wakings, alarm>>

NoneOpen == IF "openIsAState" \in Rules THEN \A s \in Servers : need[s] # Open ELSE count = 0

Count(s) ==
    /\ At(s, "count")
    /\ IF NoneOpen
       THEN thread' = [thread EXCEPT ![s] = [@ EXCEPT
                !.at = IF "compares" \in Rules THEN "compare" ELSE "release", !.rest = Servers, !.copy = need]]
       ELSE GoesTo(s, "rest")
    /\ UNCHANGED <<generation, need, count, reset, ended, passed, wakings, alarm, stood>>

\* The need of s is open from now on, if it is settled under a generation that is gone.
OpenStale(s) ==
    LET stale == need[s] # generation[s]
    IN  /\ need' = [need EXCEPT ![s] = IF stale THEN Open ELSE @]
        /\ count' = IF stale /\ (need[s] # Open \/ "openIsAState" \notin Rules) THEN count + 1 ELSE count

\* One server after the other.
Compare(s) ==
    /\ At(s, "compare")
    /\ \E t \in thread[s].rest :
        IF (IF "comparesCopy" \in Rules THEN thread[s].copy[t] ELSE need[t]) = generation[t]
        THEN /\ thread' = [thread EXCEPT ![s] = [@ EXCEPT
                    !.rest = @ \ {t}, !.at = IF thread[s].rest = {t} THEN "release" ELSE @]]
             /\ UNCHANGED <<need, count>>
        ELSE OpenStale(t) /\ GoesTo(s, "rest")
    /\ UNCHANGED <<generation, reset, ended, passed, wakings, alarm, stood>>

\* Who comes first ends the barrier; others see that.
End ==
    IF ended /\ "onlyOnce" \in Rules THEN UNCHANGED <<ended, wakings>>
    ELSE ended' = TRUE /\ wakings' = wakings + 1

Release(s) ==
    /\ At(s, "release")
    /\ End /\ passed' = (passed \/ ~ended)
    /\ GoesTo(s, "rest")
    /\ UNCHANGED <<generation, need, count, reset, alarm, stood>>

Deadline ==
    /\ alarm = "set" /\ alarm' = "over"
    /\ End
    /\ UNCHANGED <<generation, need, count, thread, reset, passed, stood>>

\* A push, in two steps, because generation and need have two locks.
Grow(s) == generation' = [generation EXCEPT ![s] = @ + 1] /\ UNCHANGED <<need, count>>

BeginReset(s) ==
    /\ reset[s] = "none" /\ generation[s] < MaxResets
    /\ reset' = [reset EXCEPT ![s] = "half done"]
    /\ IF "growsFirst" \in Rules THEN Grow(s)
       ELSE /\ need' = [need EXCEPT ![s] = Open]
            /\ count' = IF need[s] = Open THEN count ELSE count + 1
            /\ UNCHANGED generation
    /\ UNCHANGED <<thread, ended, passed, wakings, alarm, stood>>

FinishReset(s) ==
    /\ reset[s] = "half done"
    /\ reset' = [reset EXCEPT ![s] = "none"]
    /\ IF "growsFirst" \in Rules
       THEN /\ need' = [need EXCEPT ![s] = IF @ = generation[s] THEN @ ELSE Open]
            /\ count' = IF need[s] \in {Open, generation[s]} THEN count ELSE count + 1
            /\ UNCHANGED generation
       ELSE Grow(s)
    /\ UNCHANGED <<thread, ended, passed, wakings, alarm, stood>>

Next ==
    \/ \E s \in Servers :
        \/ Ask(s) \/ Settle(s) \/ Count(s) \/ Compare(s) \/ Release(s)
        \/ BeginReset(s) \/ FinishReset(s)
    \/ Deadline

Spec == Init /\ [][Next]_vars

Symmetry == Permutations(Servers)

-----------------------------------------------------------------------------
(* What has to hold. *)

\* BAR-32.
WokenOnce == wakings <= 1

\* A pass had an instant at which all needs were settled under the generations of then, by answers to
\* questions of those generations.  A reset behind that instant is the reader's exposure (BAR-24).
PassStood == passed => stood

AllRest == \A s \in Servers : At(s, "rest") /\ reset[s] = "none"

\* Nobody sleeps on though all stand,
NobodySleepsOn == ~(AllRest /\ ~ended /\ AllStand(need))

\* and no need counts as settled under a generation that is gone, so that nobody asks.
NoNeedForgotten == (AllRest /\ ~ended) => \A s \in Servers : need[s] \in {Open, generation[s]}
=============================================================================
