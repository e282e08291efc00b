"""TCP proxy on loopback that injects network faults between members without network namespaces. It
listens on one address per member, identifies the connecting member, and treats each direction of
each pair separately."""

import asyncio
import os
import random
import threading
import time

CHUNK_BYTES = 64 * 1024
CHUNKS_WAITING_MAX = 64  # queue per direction of a connection; the sender blocks when it is full


class Link:
    """Faults of one direction between two members."""

    def __init__(self):
        self.is_cut = False
        self.delay = 0.0   # seconds; each chunk takes 1.0 to 1.5 times as long
        self.loss = 0.0    # fraction of chunks delayed by a TCP retransmission


class Proxy:
    """Runs on its own thread. `links[(1, 2)]` is the direction from member 1 to member 2."""

    RESEND_SECONDS = 0.2  # minimum retransmission timeout of Linux

    def __init__(self, pid_of):
        self.pid_of = pid_of  # returns {member: process id}; called for every connection
        self.links = {}
        self.random = random.Random(1)
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
        """Returns the proxy address of `member`, which itself listens at `target`."""
        async def begin():
            return await asyncio.start_server(
                lambda reader, writer: self._serve(member, target, reader, writer), "127.0.0.1", 0)

        server = asyncio.run_coroutine_threadsafe(begin(), self.loop).result(10)
        self.servers.append(server)
        return "127.0.0.1:%d" % server.sockets[0].getsockname()[1]

    async def _serve(self, member, target, reader, writer):
        caller = self._member_of_port(writer.get_extra_info("peername")[1])
        host, port = target.rsplit(":", 1)
        try:
            onward = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        directions = [self._forward(self.link(caller, member), reader, onward[1]),
                self._forward(self.link(member, caller), onward[0], writer)]
        tasks = [asyncio.ensure_future(way) for way in directions]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for end in (writer, onward[1]):
                end.transport.abort()

    async def _forward(self, link, reader, writer):
        waiting = asyncio.Queue(CHUNKS_WAITING_MAX)

        async def read():
            while chunk := await reader.read(CHUNK_BYTES):
                delay = link.delay * self.random.uniform(1.0, 1.5)
                if link.loss and self.random.random() < link.loss:
                    delay += self.RESEND_SECONDS
                await waiting.put((time.monotonic() + delay, chunk))
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

    def _member_of_port(self, port):
        """Member whose process owns this port, found in /proc, because TLS hides the identity."""
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
