"""A reverse proxy that serves another server below a path, and passes on streams as they come."""

import http.client
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def reverse_proxy(port, path, own_port=0):
    """Serve port `port` of this machine below `path`, which ends in a slash; yield the proxy's own port.

    The browser's ``Host`` is passed on. By default, the proxy's own port is any that is free.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self):
            if not self.path.startswith(path):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(self.command, "/" + self.path[len(path) :], body, dict(self.headers))
            answer = connection.getresponse()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            with suppress(OSError, http.client.HTTPException):  # either side has left
                while part := answer.read1(65_536):
                    self.wfile.write(part)
                    self.wfile.flush()
            connection.close()

        do_GET = do_POST = pass_on  # noqa: N815 - names of the standard library

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", own_port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
