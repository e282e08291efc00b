"""TCP relay whose connections can fall silent without an end, as when a machine fails."""

import asyncio
import threading


class FreezingRelay:
    """Runs on its own thread. freeze() silences the connections of that moment; new ones work."""

    def __init__(self, target):
        self.host, self.port = target.rsplit(":", 1)
        self.open, self.frozen, self.tasks = set(), set(), set()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = "tenure://127.0.0.1:%d" % server.sockets[0].getsockname()[1]

    def freeze(self):
        async def all_open():
            self.frozen |= self.open

        self._run(all_open())

    def close(self):
        async def end():
            for task in self.tasks:
                task.cancel()

        self._run(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    async def _serve(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        server_reader, server_writer = await asyncio.open_connection(self.host, int(self.port))
        self.open.add(writer)
        directions = [asyncio.ensure_future(self._forward(writer, *ends))
                      for ends in ((reader, server_writer), (server_reader, writer))]
        self.tasks |= set(directions)
        await asyncio.wait(directions)

    async def _forward(self, connection, reader, writer):
        while data := await reader.read(65536):
            if connection not in self.frozen:
                writer.write(data)
        if connection not in self.frozen:
            writer.close()
