"""What lies between members where network namespaces are not to be had: a TCP proxy on loopback
with an address for each member, which knows who calls and treats every direction of every pair by
itself."""

import asyncio
import os
import random
import threading
import time

CHUNK_BYTES = 64 * 1024
CHUNKS_WAITING_MAX = 64  # of one direction of one connection; then the sender has to wait


class Link:
    """What happens to bytes from one member to another."""

    def __init__(self):
        self.is_cut = False
        self.delay = 0.0   # seconds, up to half as much again
        self.loss = 0.0    # share of chunks that come as late as TCP sends a lost one again


class Proxy:
    """Runs on a thread of its own. `links[(1, 2)]` is the way from member 1 to member 2."""

    RESEND_SECONDS = 0.2  # the kernel's shortest time until it sends again

    def __init__(self, pid_of):
        self.pid_of = pid_of  # members and their processes, asked at every connection
        self.links = {}
        self.chance = random.Random(1)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.servers = []

    def close(self):
        async def end():
            for server in self.servers:
                server.close()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(end(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    def link(self, sender, receiver):
        return self.links.setdefault((sender, receiver), Link())

    def listen(self, member, target):
        """An address for others at which `member` is reached; it listens itself at `target`."""
        async def begin():
            return await asyncio.start_server(
                lambda reader, writer: self._serve(member, target, reader, writer), "127.0.0.1", 0)

        server = asyncio.run_coroutine_threadsafe(begin(), self.loop).result(10)
        self.servers.append(server)
        return "127.0.0.1:%d" % server.sockets[0].getsockname()[1]

    async def _serve(self, member, target, reader, writer):
        caller = self._who_calls(writer.get_extra_info("peername")[1])
        host, port = target.rsplit(":", 1)
        try:
            onward = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        ways = [self._carry(self.link(caller, member), reader, onward[1]),
                self._carry(self.link(member, caller), onward[0], writer)]
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for end in (writer, onward[1]):
                end.transport.abort()

    async def _carry(self, link, reader, writer):
        waiting = asyncio.Queue(CHUNKS_WAITING_MAX)

        async def read():
            while chunk := await reader.read(CHUNK_BYTES):
                late = link.delay * self.chance.uniform(1.0, 1.5)
                if link.loss and self.chance.random() < link.loss:
                    late += self.RESEND_SECONDS
                await waiting.put((time.monotonic() + late, chunk))
            await waiting.put((0, b""))

        reading = asyncio.ensure_future(read())
        try:
            while True:
                due, chunk = await waiting.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                while link.is_cut:
                    await asyncio.sleep(0.005)
                if not chunk:
                    return
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass
        finally:
            reading.cancel()

    def _who_calls(self, port):
        """The member whose process has this port: by /proc, since TLS shows nothing else."""
        with open("/proc/net/tcp", encoding="ascii") as table:
            inode = next((fields[9] for fields in map(str.split, table)
                          if fields[1].endswith(":%04X" % port)), None)
        for member, pid in self.pid_of().items():
            try:
                files = [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
                if any(os.readlink(file) == f"socket:[{inode}]" for file in files):
                    return member
            except OSError:
                continue
        return 0
