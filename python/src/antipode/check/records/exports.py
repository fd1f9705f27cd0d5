"""Records from exports of traces: OTLP, Jaeger and Zipkin JSON, by the event `antipode.finding` (OBS-11)."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from antipode.check.records.line import FORM, KINDS, Line, convert

EVENT: Final = "antipode.finding"
UNTOLD: Final = "spans' events without what they found"
_PREFIX: Final = "antipode."
_OWN: Final = ("site", "store", "server", "confirmed", "barrier", "written_at", "target", "reason", "reach")
"""Fields that attributes have under their own names."""
_UNFIT: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


class NotAnExportError(Exception):
    """The document is no export of traces that is known."""


def lines_of_export(document: Any, place: str, passed_over: Counter[str]) -> Iterator[Line]:
    """The findings of a decoded document, as records.

    Raises:
        NotAnExportError: it is neither OTLP, nor Jaeger's, nor Zipkin's.
    """
    if isinstance(document, dict) and any(name in document for name in ("resourceSpans", "resource_spans", "batches")):
        events = _otlp(document)
    elif isinstance(document, dict) and isinstance(document.get("data"), list):
        events = _jaeger(document["data"])
    elif isinstance(document, list) and all(isinstance(span, dict) and "traceId" in span for span in document):
        events = _zipkin(document)
    else:
        raise NotAnExportError
    try:
        for service, trace, seconds, attributes in events:
            line = _line(service, trace, seconds, attributes)
            if line is None:
                passed_over[UNTOLD] += 1
            else:
                yield line
    except (*_UNFIT, msgspec.MsgspecError) as error:
        raise NotAnExportError(f"an export of traces with a part that does not fit: {type(error).__name__}") from None


_Event = tuple[str, str, float, dict[str, Any]]


def _line(service: str, trace: str, seconds: float, attributes: dict[str, Any]) -> Line | None:
    """A record from what an event says; None where it names its kind alone, or of a barrier not what it saw."""
    given = {name.removeprefix(_PREFIX): value for name, value in attributes.items() if name.startswith(_PREFIX)}
    if "kind" not in given or len(given) == 1:
        return None
    kind = given["kind"]
    if kind not in KINDS:
        return None
    fields: dict[str, Any] = {
        "record": FORM,
        "kind": kind,
        "time": seconds,
        "service": service,
        "region": given.get("region", ""),
        "process": given.get("process", ""),
        "trace_id": trace,
    }
    for name in (*_OWN, "satisfied"):
        if name in given:
            fields[name] = given[name]
    fields["store_kind"] = given.get("store.kind", "")
    fields.setdefault("target", "")  # an empty attribute is left out
    fields["complete"] = given.get("complete", False)
    fields.setdefault("reach", "region")
    fields["visible_after"] = given.get("visible_after")
    if "origin.scope" in given:
        fields["origin"] = {
            "scope": given["origin.scope"],
            "opened_by": given.get("origin.opened_by", ""),
            "store": given.get("origin.store", ""),
        }
    if kind == "barrier":
        if "not_visible" not in given and "visible" not in given:
            return None  # the event was made when the barrier began (OBS-11)
        late, seen = given.get("not_visible", []), given.get("visible", [])
        fields.setdefault("satisfied", not late)
        fields["stores"] = [{"store": name, "verdict": "not_yet"} for name in late] + [
            {"store": name, "verdict": "visible"} for name in seen
        ]
    for name in ("lineage_stores", "registered"):
        if name in given:
            fields[name] = given[name]
    try:
        return convert(fields)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _seconds(value: Any, unit: float) -> float:
    seconds = float(value) / unit
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError("a time that is none")
    return seconds


# OTLP: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding


def _otlp(document: dict[str, Any]) -> Iterator[_Event]:
    resources = document.get("resourceSpans") or document.get("resource_spans") or document.get("batches") or []
    for resource in resources:
        about = _otlp_attributes((resource.get("resource") or {}).get("attributes") or [])
        service = about.get("service.name", "")
        for scope in resource.get("scopeSpans") or resource.get("scope_spans") or []:
            for span in scope.get("spans") or []:
                for event in span.get("events") or []:
                    if event.get("name") == EVENT:
                        at = event.get("timeUnixNano") or event.get("time_unix_nano") or 0
                        trace = span.get("traceId") or span.get("trace_id") or ""
                        yield service, trace, _seconds(at, 1e9), _otlp_attributes(event.get("attributes") or [])


def _otlp_attributes(pairs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _otlp_value(pair.get("value") or {}) for pair in pairs}


def _otlp_value(value: dict[str, Any]) -> Any:
    if "arrayValue" in value:
        return [_otlp_value(each) for each in value["arrayValue"].get("values") or []]
    for name, kind in (("stringValue", str), ("boolValue", bool), ("intValue", int), ("doubleValue", float)):
        if name in value:
            return kind(value[name])
    return None


# Jaeger's UI and API: data[].spans[].logs[].fields[], processes by id


def _jaeger(traces: list[Any]) -> Iterator[_Event]:
    for trace in traces:
        processes = trace.get("processes") or {}
        for span in trace.get("spans") or []:
            process = span.get("process") or processes.get(span.get("processID")) or {}
            for log in span.get("logs") or []:
                fields = {each["key"]: _parsed(each.get("value")) for each in log.get("fields") or []}
                if EVENT in (fields.get("event"), fields.get("message"), fields.get("name")):
                    at = _seconds(log.get("timestamp", 0), 1e6)
                    yield process.get("serviceName", ""), span.get("traceID", ""), at, fields


# Zipkin v2: an annotation whose value is the event's name and its attributes as JSON: {"name": {…}} or "name":{…} by
# the SDKs' exporters, name: {…} by Go's, name|{…}|0 by the Collector

_ANNOTATED: Final = re.compile(r'\{?\s*"?' + re.escape(EVENT) + r'"?\s*(?:([:|])\s*|$)')
_DECODER: Final = json.JSONDecoder()


def _zipkin(spans: list[Any]) -> Iterator[_Event]:
    for span in spans:
        service = (span.get("localEndpoint") or {}).get("serviceName", "")
        for annotation in span.get("annotations") or []:
            value = annotation.get("value", "")
            if not isinstance(value, str) or EVENT not in value:
                continue
            attributes = _annotated(value)
            if attributes is not None:
                yield service, span["traceId"], _seconds(annotation.get("timestamp", 0), 1e6), attributes


def _annotated(value: str) -> dict[str, Any] | None:
    """The attributes; None where it is no such event. Raises ValueError where they are cut off."""
    found = _ANNOTATED.match(value)
    if found is None:
        return None
    if not found[1]:
        return {}
    text = value[found.end() :]
    _, end = _DECODER.raw_decode(text)
    # Once more by the stricter reader, which knows no NaN and no half of a surrogate pair.
    inner = msgspec.json.decode(text[:end].encode("utf-8"), type=dict[str, Any])
    return {name: _parsed(each) for name, each in inner.items()}


def _parsed(value: Any) -> Any:
    """Jaeger and Zipkin keep lists as JSON texts."""
    if isinstance(value, str) and value.startswith("["):
        try:
            found = msgspec.json.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return value
        if isinstance(found, list):
            return found
    return value
