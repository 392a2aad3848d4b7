"""An S3 server on loopback (moto's) that fails as it is told; it ends when its standard input does.

    python -m benchmarks.chaos.store [HOW ...]    # prints its port

HOW is any of `errors=P` (a share P of all calls is answered by 500 or 503), `cut=P` (of uploads a
share P breaks off in the middle), `slow=S` (every call takes up to S seconds more), and `away=S`
(from the first upload below cells/ on, every call is answered by 503 for S seconds); none of it
once it has read a line. It has one bucket, `bucket`.
"""

from __future__ import annotations

import argparse
import logging
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

ERROR = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>on '
    b"purpose</Message></Error>"
)
CODES = {"500 Internal Server Error": b"InternalError", "503 Service Unavailable": b"SlowDown"}
BUCKET = "bucket"


class Faulty:
    """A WSGI application before another one.

    Args:
        app: the store.
        how: rates and seconds by name, see above.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], how: dict[str, float]) -> None:
        self.app, self.how = app, how
        self.generator, self.lock = random.Random(0), threading.Lock()
        self.away: float | None = None

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        with self.lock:
            draw, cut, slow = (self.generator.random() for _ in range(3))
        upload = environ["REQUEST_METHOD"] == "PUT"
        if (
            "away" in self.how
            and upload
            and "/cells/" in environ["PATH_INFO"]
            and self.away is None
        ):
            self.away = time.monotonic() + self.how["away"]
        if upload and cut < self.how.get("cut", 0.0):
            self._break_off(environ)
            return []
        time.sleep(slow * self.how.get("slow", 0.0))
        status = list(CODES)[draw < 0.5 * self.how.get("errors", 0.0)]
        is_away = "away" in self.how and time.monotonic() < (self.away or 0.0)
        if is_away or draw < self.how.get("errors", 0.0):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(status, [("Content-Type", "application/xml")])
            return [ERROR % CODES[status]]
        return self.app(environ, start_response)

    @staticmethod
    def _break_off(environ: dict[str, Any]) -> None:
        """Take half of an upload, and hang up."""
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0) // 2)
        with suppress(OSError):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("how", nargs="*", metavar="HOW")
    options = parser.parse_args()
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    how = {name: float(value) for name, _, value in (word.partition("=") for word in options.how)}
    app = DomainDispatcherApplication(create_backend_app)
    _make_bucket(app)
    server = make_server("127.0.0.1", 0, Faulty(app, how), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    for _ in sys.stdin:
        how.clear()


def _make_bucket(app: Any) -> None:
    from werkzeug.test import Client

    signed = (
        "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/aws4_request, "
        "SignedHeaders=host, Signature=0"
    )
    answer = Client(app).put(f"/{BUCKET}", headers={"Authorization": signed, "Host": "127.0.0.1"})
    assert answer.status_code == 200, answer.text


if __name__ == "__main__":
    main()
