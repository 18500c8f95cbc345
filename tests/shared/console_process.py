"""A console in a process of its own."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from contextlib import closing

from waiting import SLOW_S

from fieldbo.record.record import Record

TOKEN = "a-token-for-tests-0123456789"


class Console:
    """A console in a process of its own, for a mission in another one that waits for answers."""

    def __init__(self, folder, *arguments):
        self.folder, self.run = folder, folder / "runs" / "lake-1"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fieldbo", "console", *map(str, arguments), "--port", "0"],
            cwd=folder,
            env={**os.environ, "FIELDBO_CONSOLE_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(r"http://([\d.]+):(\d+)/\?token=(\S+)", line):
                self.port = int(found[2])
                break
        else:
            raise AssertionError("".join(self.lines))
        threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True).start()

    def request(self, method, path, body=None, token=TOKEN, host=None, **headers):
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=SLOW_S)) as connection:
            given = {"Host": host or f"127.0.0.1:{self.port}", **headers}
            if token:
                given["Authorization"] = f"Bearer {token}"
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())

    def post(self, path, content, **headers):
        return self.request("POST", path, json.dumps(content), **headers)

    def close(self):
        self.process.kill()
        self.process.wait()


def rows_of(run):
    with Record(run / "run.sqlite") as record:
        return record.rows()
