"""Recorded histories of S3: an object that has not come, with and without a barrier (HIST-28, HIST-29)."""

from __future__ import annotations

from pathlib import Path

import antipode
import pytest
from antipode._diagnostics.history import recorder
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.reading import read_history
from antipode.messages import outgoing_message
from botocore.exceptions import ClientError
from s3_regions import BUCKET, Images, new_key


@pytest.mark.parametrize("waits", [False, True])
def test_an_object_that_has_not_come(images: Images, tmp_path: Path, waits: bool) -> None:
    antipode.configure(history=tmp_path)
    key, again = new_key(), new_key()
    images.lab.lag("b1", "300ms" if waits else "5s")
    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"one")
        images.a.put_object(Bucket=BUCKET, Key=again, Body=b"one")
        images.a.put_object(Bucket=BUCKET, Key=again, Body=b"one")
        assert images.a.get_object(Bucket=BUCKET, Key=again)["Body"].read() == b"one"
        text = outgoing_message()
    with antipode.message_scope(text):
        if waits:
            antipode.barrier(timeout=30)
            assert images.b.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"one"
            images.b.head_object(Bucket=BUCKET, Key=again)
        else:
            with pytest.raises(ClientError):
                images.b.get_object(Bucket=BUCKET, Key=key)
    recorder.forget()
    history = read_history(tmp_path)
    decision = decide(history)
    assert not history.gaps
    assert decision.judged == (3 if waits else 2)
    assert decision.verdict is (Verdict.CONSISTENT if waits else Verdict.VIOLATED)
    assert [history.operations[found.operation].key for found in decision.found] == ([] if waits else [key])
