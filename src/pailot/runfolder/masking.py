"""Secrets are starred out of a stream of bytes, however it is cut into pieces.

Every occurrence of every form of a secret is masked; occurrences that overlap become one mask, so that of two secrets
that share an end and a beginning nothing is left over. What can still grow into a secret is held back, and no more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MASK = b"******"
SHORTEST = 4  # characters; anything shorter would star out half of every log
WRAP = 76  # where `base64` breaks its lines

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_JSON_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
# Which bytes are rare enough to look for, until the first long chunk shows what this log is made of.
_TYPICAL = (
    b"2024-05-17 12:34:56,789 INFO  [worker:0] epoch 3/90 step 1200: loss=0.6931 accuracy=0.5127 (eta 0:14:03)\n"
    b'  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl\n'
    b"Collecting requests>=2.28 Downloading https://files.pythonhosted.org/packages/requests-2.31.0-py3-none-any.whl\n"
    b"WARNING: the directory or its parent is not owned by the current user; ERROR: exit code 1\n"
)
_SAMPLE = 16_384  # a chunk of this size is good evidence of which bytes are rare
_FEW_FORMS = 64  # up to this number they are looked for one by one in a short text
_PATIENCE = 64  # chunks between two looks at which bytes are rare


def mask_text(text: str, secrets: Iterable[str]) -> str:
    """The text with every form of every secret masked."""
    return text_masker(secrets)(text)


def text_masker(secrets: Iterable[str]) -> Callable[[str], str]:
    """`mask_text` for many texts: the search for the secrets is prepared once."""
    prepared = Masker(secrets)
    try:
        forms = [form.decode("utf-8") for form in prepared.forms]
    except UnicodeDecodeError:  # a secret that is no text
        forms = []
    few = 0 < len(forms) <= _FEW_FORMS

    def mask(text: str) -> str:
        if few and not any(form in text for form in forms):  # most texts hold none; this is ten times as fast
            return text
        errors = _errors(text)
        return prepared.whole(text.encode("utf-8", errors)).decode("utf-8", errors)

    return mask


class Masker:
    """Masks secrets in the bytes fed to it; one stream each (`twin` gives another stream the same secrets)."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._search = _Search(_forms(secrets))
        self._held = b""
        self._covered = 0  # bytes at the start of `_held` that are already behind a mask that has gone out

    @property
    def forms(self) -> Sequence[bytes]:
        """Everything that is masked: each secret in each of its spellings."""
        return self._search.texts

    def twin(self) -> Masker:
        """A masker for another stream; the search for the secrets, dear to prepare, is shared."""
        other = Masker.__new__(Masker)
        other._search, other._held, other._covered = self._search, b"", 0
        return other

    @property
    def held(self) -> int | None:
        """How many bytes wait for the next chunk; None while some of them are behind a mask that has gone out."""
        return None if self._covered else len(self._held)

    def whole(self, data: bytes) -> bytes:
        """All of a text at once: no end of it waits for a next chunk."""
        return self.twin()._emit(data, len(data)) if self._search.groups else data

    def feed(self, chunk: bytes) -> bytes:
        """What may be shown now. Only an end that is the beginning of a secret waits for the next chunk."""
        if not self._search.groups:
            return chunk
        data = self._held + chunk if self._held else chunk
        # Before the cut no match can begin that more input would complete or lengthen: all there is decided.
        cut = self._search.cut(data)
        return self._emit(data, cut)

    def flush(self) -> bytes:
        """What was held back, at the end of the stream: nothing follows that could complete a secret."""
        return self._emit(self._held, len(self._held)) if self._held else b""

    def _emit(self, data: bytes, cut: int) -> bytes:
        spans = self._search.spans(data)
        position = self._covered
        if not spans and not position:
            self._held = data[cut:]
            return data[:cut]
        pieces: list[bytes] = []
        spans.sort()
        for start, end in spans:
            if start >= cut:
                break
            if start < position:  # overlaps the mask before it
                position = max(position, end)
            else:
                pieces += (data[position:start], MASK)
                position = end
        if position < cut:
            pieces.append(data[position:cut])
        self._held = data[cut:]
        self._covered = max(position - cut, 0)
        return b"".join(pieces)


class _Form:
    """A string to look for, and the longer ones that contain it: they can only be where it is."""

    __slots__ = ("text", "longer")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.longer: list[tuple[int, bytes]] = []  # where in the longer one this one begins

    def found(self, data: bytes, at: int, spans: list[tuple[int, int]]) -> None:
        spans.append((at, at + len(self.text)))
        for offset, text in self.longer:
            if at >= offset and data.startswith(text, at - offset):
                spans.append((at - offset, at - offset + len(text)))


class _Search:
    """Finds every occurrence of many strings in a chunk, much faster than one search for each.

    Each string is given an anchor, a byte of it that is rare in this log; few anchors serve all strings. Looking for one byte
    runs at the speed of memory, and where an anchor is, the byte after it tells which strings are worth comparing.
    """

    def __init__(self, forms: Iterable[bytes]) -> None:
        self.forms: list[_Form] = []
        self.texts = sorted(forms, key=lambda text: (len(text), text))
        self._first = {text[0] for text in self.texts}
        self._ends: dict[bytes, list[tuple[int, bytes]]] = {}  # two bytes: where a string's beginning may end with them
        self._sort_out()
        self._chunks = _PATIENCE  # since the last look
        self.groups = self._plan(_TYPICAL)

    def _sort_out(self) -> None:
        """Which strings are looked for by themselves, and which only where a shorter one is that they contain.

        All are searched at once, as one long text: to compare each with each would take half a minute for 2,000 secrets.
        """
        if not self.texts:
            return
        from bisect import bisect_right

        starts, size = [], 0
        for text in self.texts:
            starts.append(size)
            size += len(text)
        whole, contained = b"".join(self.texts), set()
        for number, text in enumerate(self.texts):
            if number in contained:
                continue
            form = _Form(text)
            self.forms.append(form)
            at = whole.find(text, starts[number] + len(text))
            while at >= 0:
                other = bisect_right(starts, at) - 1
                longer = self.texts[other]
                offset = at - starts[other]
                if offset + len(text) > len(longer):  # where two of them meet
                    at = whole.find(text, at + 1)
                    continue
                if other not in contained:
                    contained.add(other)
                    form.longer.append((offset, longer))
                at = whole.find(text, starts[other] + len(longer))

    def _plan(self, sample: bytes) -> list[tuple[int, dict[int, list[tuple[int, _Form]]], list[_Form]]]:
        """Anchors that together serve all strings: each time the byte that costs least for each string it serves."""
        bytes_of = {form: form.text[:-1] for form in self.forms}
        price = {byte: sample.count(byte) + len(sample) / 1500 for byte in set(b"".join(bytes_of.values()))}
        left = list(self.forms)
        groups = []
        while left:
            served = dict.fromkeys(price, 0)
            for form in left:
                for byte in set(bytes_of[form]):
                    served[byte] += 1
            anchor = min((byte for byte in served if served[byte]), key=lambda byte: (price[byte] / served[byte], byte))
            after: dict[int, list[tuple[int, _Form]]] = {}
            chosen = [form for form in left if anchor in bytes_of[form]]
            for form in chosen:
                offset = form.text.index(anchor)
                after.setdefault(form.text[offset + 1], []).append((offset, form))
            groups.append((anchor, after, chosen))
            left = [form for form in left if anchor not in bytes_of[form]]
        return groups

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Where strings are, in no order, overlapping ones included."""
        spans: list[tuple[int, int]] = []
        find = data.find
        last = len(data) - 1  # an anchor is never the last byte of its string
        most = 64 + len(data) // 256
        crowded = False
        for anchor, after, forms in self.groups:
            at = find(anchor, 0, last)
            seen = 0
            while at >= 0:
                candidates = after.get(data[at + 1])
                if candidates:
                    for offset, form in candidates:
                        if at >= offset and data.startswith(form.text, at - offset):
                            form.found(data, at - offset, spans)
                elif seen > most:
                    break
                seen += 1
                at = find(anchor, at + 1, last)
            if at >= 0:  # not rare here after all: from here on one search for each string is faster
                crowded = True
                for form in forms:
                    start = find(form.text, max(at - len(form.text) + 1, 0))
                    while start >= 0:
                        form.found(data, start, spans)
                        start = find(form.text, start + 1)
        self._chunks += 1
        if crowded and self._chunks >= _PATIENCE and len(data) >= _SAMPLE:
            self._chunks = 0
            self.groups = self._plan(data)
        return spans

    def cut(self, data: bytes) -> int:
        """Where the longest end of the data begins that is the beginning of a string, but not all of it; else its length."""
        size = len(data)
        if not size:
            return 0
        for length, text in self._ending(data[-2:]):
            if length <= size and text.startswith(data[size - length :]):
                return size - length
        return size - 1 if data[-1] in self._first else size

    def _ending(self, pair: bytes) -> list[tuple[int, bytes]]:
        """The beginnings of strings that end with these two bytes, longest first. Most pairs, as at a line's end, have none."""
        known = self._ends.get(pair)
        if known is None:
            known = []
            for text in self.texts:
                at = text.find(pair, 0, -1) if len(pair) == 2 else -1
                while at >= 0:
                    known.append((at + 2, text))
                    at = text.find(pair, at + 1, -1)
            known.sort(reverse=True)
            if len(self._ends) > 4096:  # binary output has all pairs
                self._ends.clear()
            self._ends[pair] = known
        return known


def _forms(secrets: Iterable[str]) -> set[bytes]:
    """What to look for: each secret as it is, and as programs commonly print it."""
    forms: set[bytes] = set()
    for secret in secrets:
        if len(secret) < SHORTEST:
            continue
        # A file's last line break is dropped by `$(cat file)`, and lines are printed one by one, often indented.
        bare = secret.strip()
        for text in {secret, bare if len(bare) >= SHORTEST else secret}:
            errors = _errors(text)
            raw = text.encode("utf-8", errors)
            forms.add(raw)
            forms.update(_base64(raw))
            if not raw.isalnum():  # else these are all the same
                forms.update(_quoted(raw))
                forms.update(form.encode("utf-8", errors) for form in (_json(text, False), _json(text, True)))
                forms.add(raw.replace(b"'", b"'\\''"))  # how bash prints it with `set -x`
        for line in secret.replace("\r", "\n").split("\n"):
            line = line.strip()
            if len(line) >= SHORTEST:
                forms.add(line.encode("utf-8", _errors(line)))
    return forms


def _base64(raw: bytes) -> set[bytes]:
    """The secret's base64, alone and inside that of a longer text (`user:secret`), as far as the secret alone decides it.

    What of its first and last byte shares a character with its neighbours stays: at most four bits of each.
    """
    from binascii import b2a_base64  # most runs have nothing to hide, and it is a library of its own to load

    forms: set[bytes] = set()
    for shift in range(3):
        start = -(-8 * shift // 6)
        found = {b2a_base64(b"\0" * shift + raw, newline=False)[start : 8 * (shift + len(raw)) // 6]}
        for whole in (raw, raw + b"\n"):  # `echo $SECRET | base64` adds a line break
            padded = b2a_base64(b"\0" * shift + whole, newline=False)[start:]
            found.update((padded, padded.rstrip(b"=")))
            if len(padded) > WRAP and not shift:
                found.update(padded[at : at + WRAP] for at in range(0, len(padded), WRAP))
        forms.update(form for form in found if len(form) >= 6)  # shorter ones are found in innocent words
    return forms | {form.replace(b"+", b"-").replace(b"/", b"_") for form in forms}


def _quoted(raw: bytes) -> set[bytes]:
    """The secret in a URL. What is left as it is differs between programs: a path, JavaScript, a form."""
    # First the signs that the replacements themselves bring in.
    special = sorted(set(raw) - _UNRESERVED, key=lambda byte: (byte != 0x25, byte != 0x2B, byte))
    forms = set()
    for safe, space in (b"", b"%20"), (b"/", b"%20"), (b"!*'()", b"%20"), (b"", b"+"), (b"*", b"+"):
        for pattern in (b"%%%02X", b"%%%02x"):
            form = raw
            for byte in special:
                if byte not in safe:
                    form = form.replace(bytes((byte,)), space if byte == 0x20 else pattern % byte)
            forms.add(form)
    return forms


def _json(text: str, ascii_only: bool) -> str:
    return text.translate({ord(char): _json_char(char, ascii_only) for char in set(text)})


def _json_char(char: str, ascii_only: bool) -> str:
    code = ord(char)
    if char in _JSON_SHORT:
        return _JSON_SHORT[char]
    if code > 0xFFFF and ascii_only:
        code -= 0x10000
        return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"
    return f"\\u{code:04x}" if code < 0x20 or (code > 0x7E and ascii_only) else char


def _errors(text: str) -> str:
    """How to encode text that may hold bytes of an environment variable, or half a surrogate pair of a JSON file."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return "surrogatepass"
    return "surrogateescape"
