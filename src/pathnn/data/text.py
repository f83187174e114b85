"""Text files, packed or not."""

from __future__ import annotations

import gzip
import lzma
import zlib
from pathlib import Path

from pathnn.data.errors import DataError


def read_text(path: Path) -> str:
    """The text of a plain, `.gz` or `.xz` file."""
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        elif path.suffix.lower() == ".xz":
            content = lzma.decompress(content)
        return content.decode("utf-8-sig")  # some programs mark UTF-8 at its beginning
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged or is no UTF-8 text: {error}.") from error
