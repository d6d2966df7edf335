"""What an upgraded connection for archives carries: frames of a type (one byte), a length (four bytes, big
endian) and as many bytes. To the daemon 0: bytes, none when that was all. From it 1: bytes; 3: its last word."""
from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Union

from .errors import DurwardError, refusal
from .models import Snapshot, Volume

CHUNK = 60 * 1024
_FRAME_MAX = 64 * 1024
_HEAD = struct.Struct(">BI")
_BYTES, _LAST = 1, 3
Source = Union[Iterable[bytes], BinaryIO]


def frame(piece: bytes) -> bytes:
    """piece: at most CHUNK bytes; none says that that was all."""
    return _HEAD.pack(0, len(piece)) + piece


def pieces(source: Source) -> Iterator[bytes]:
    """Of any archive, none empty, none above CHUNK. A file is read, since its lines may have any length."""
    read = getattr(source, "read", None)
    for whole in iter(lambda: read(CHUNK), b"") if read else source:
        for at in range(0, len(whole), CHUNK):
            yield whole[at:at + CHUNK]


class Frames:
    """Bytes of the daemon's, cut into frames."""

    def __init__(self) -> None:
        self._held = b""
        self.last: bytes | None = None  # its last word, once it is there

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Bytes of the archive that are whole now."""
        self._held += data
        while self.last is None and len(self._held) >= _HEAD.size:
            kind, size = _HEAD.unpack_from(self._held)
            if kind not in (_BYTES, _LAST) or size > _FRAME_MAX:
                raise DurwardError("the daemon's answer is malformed", "malformed")
            end = _HEAD.size + size
            if len(self._held) < end:
                return
            payload, self._held = self._held[_HEAD.size:end], self._held[end:]
            if kind == _LAST:
                self.last = payload
            else:
                yield payload

    def _outcome(self, of: str) -> Any:
        if self.last is None:
            raise ConnectionError("the daemon ended the transfer")
        word = json.loads(self.last)
        if of not in word:
            raise refusal(101, self.last)
        return word[of]

    def snapshot(self) -> Snapshot:
        """What came of it: the last word must have been said. Raises what it says went wrong."""
        return Snapshot.read(self._outcome("snapshot"))

    def volume(self) -> Volume:
        """The same of a volume's."""
        return Volume.read(self._outcome("volume"))
