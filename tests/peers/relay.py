"""A poor link: passes datagrams on between two sides, and loses, doubles and delays some of them, by seed.

``python relay.py PORT [--loss 0.2] [--double 0.1] [--late 0.1] [--late-s 0.4] [--seed 0]`` listens at PORT of
127.0.0.1, where the vehicle sends to, and passes on to PORT of 127.0.0.2, where a ground station hears it
that listens on all addresses; and back. It says at which port it does the latter: what anyone else sends
there reaches the vehicle, too. After SIGUSR1 it passes nothing on, until the next one, and says so.
"""

import argparse
import heapq
import random
import select
import signal
import socket
import time

OUT, HOME = "127.0.0.2", "127.0.0.1"


def relay(port, loss, double, late, late_s, seed):
    rng = random.Random(seed)
    inner, outer = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    inner.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the ground station has the port, too
    inner.bind((HOME, port))
    outer.bind((HOME, 0))
    vehicle, waiting, number, gone = None, [], 0, [False]

    def toggle(*_):
        gone.append(not gone.pop())
        print("gone" if gone[0] else "back", flush=True)

    signal.signal(signal.SIGUSR1, toggle)
    print(f"ready, and on {outer.getsockname()[1]}", flush=True)
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 1.0
        ready, _, _ = select.select([inner, outer], [], [], timeout)
        for one in ready:
            try:
                data, sender = one.recvfrom(65_536)
            except ConnectionError:  # nobody listens there now
                continue
            vehicle = sender if one is inner else vehicle
            for _ in range(2 if rng.random() < double else 1):
                if rng.random() >= loss and not gone[0]:
                    number += 1
                    due = time.monotonic() + (rng.uniform(0, late_s) if rng.random() < late else 0.0)
                    heapq.heappush(waiting, (due, number, one is inner, data))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, outwards, data = heapq.heappop(waiting)
            if outwards:
                outer.sendto(data, (OUT, port))
            elif vehicle is not None:
                inner.sendto(data, vehicle)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    for share in ("--loss", "--double", "--late"):
        parser.add_argument(share, type=float, default=0.0)
    parser.add_argument("--late-s", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=0)
    relay(**vars(parser.parse_args()))
