"""What is wrong with a tap, and what cures it: for `wrap`, and for `antipode doctor stomp://broker:61613#topic`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from antipode.shim.administration import Finding, Level
from antipode.shim.tap import TapMemory, TapRefusedError, refused_tap

from antipode_activemq import configuration
from antipode_activemq.reader import TapReader
from antipode_activemq.tap import PREFIX, Tap

PROBE_S: Final = 2.0


def probe(tap: Tap, timeout: float = PROBE_S) -> TapReader:
    """Reads a tap for a moment. Raises TapRefusedError, or OSError where the broker is out of reach."""
    reader = TapReader(tap, TapMemory(1), lambda: None, timeout)
    try:
        reader.start(timeout)
    finally:
        reader.close()
        reader.join(timeout)
    return reader


def cure_of(tap: Tap, error: TapRefusedError) -> tuple[str, str]:
    """What a broker's refusal means, and what to do about it."""
    words = str(error)
    user = tap.login[0] or "USER"
    if "not authorized" in words:
        return (
            f"{user} may not read and write {tap.topic} ({words})",
            f"Grant both in activemq.xml: {configuration.rights('GROUP')}",
        )
    if "keeps no past" in words:
        return words, f"Let it keep the last messages, in activemq.xml: {configuration.past(tap.remember)}"
    if "network connector" in words:
        return words, f"Keep taps out of every network connector, in activemq.xml: {configuration.exclusion()}"
    if "password" in words or "User name" in words or "credentials" in words.lower():
        return f"{user} may not log in", "Give the right user and password in the URL."
    return words, "See the broker's log."


def diagnose(url: str) -> Sequence[Finding]:
    """Findings for a broker, or a tap where the URL names its topic behind #."""
    if "#" not in url:
        return _diagnose_broker(url)
    tap = Tap.of(url)
    try:
        reader = probe(tap)
    except TapRefusedError as error:
        return [refused_tap(*cure_of(tap, error))]
    return [
        Finding(Level.OK, f"tap: {tap.topic} at {reader.server} keeps its past and can be read"),
        Finding(
            Level.WARNING,
            "network connectors: cannot be seen from a client",
            "A connector that carries the tap's topic is noticed only when another broker's tap is read too; what came "
            "that way has not arrived here.",
            f"Make sure that each has, in activemq.xml: {configuration.exclusion()}",
            code="AP709",
        ),
    ]


def _diagnose_broker(url: str) -> Sequence[Finding]:
    reader = TapReader(Tap(url, f"{PREFIX}none"), TapMemory(1), lambda: None, PROBE_S)
    try:
        reader.connect(PROBE_S)
    except TapRefusedError as error:
        what, cure = cure_of(Tap(url, f"{PREFIX}none"), error)
        return [Finding(Level.UNPROVEN, what, "Nothing can be sent or consumed.", cure, code="AP208")]
    finally:
        reader.close()
        reader.join(PROBE_S)
    return [
        Finding(Level.OK, f"broker: {reader.server}, lineages travel in the messages' headers"),
        Finding(
            Level.WARNING,
            "tap: none named",
            "Messages that are sent with track=True are unproven where no tap is read; without track nothing is.",
            f"Name it behind #: antipode doctor stomp://broker:61613#{PREFIX}NAME",
            code="AP708",
        ),
    ]
