"""Proxy between `tenure` and a tenured that loses replies."""

import collections
import concurrent.futures

import grpc

from command import TIMEOUT


class LossyProxy(grpc.GenericRpcHandler):
    """gRPC server that forwards unary calls to a tenured. The first reply of one method is lost:
    the tenured executes the call, and the client gets UNAVAILABLE."""

    def __init__(self, address, lost_method):
        self.channel = grpc.insecure_channel(address)
        self.lost_method, self.counts = lost_method, collections.Counter()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=(self,))
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.url = f"tenure://127.0.0.1:{port}"

    def service(self, handler_call_details):
        path = handler_call_details.method
        method = path.rsplit("/", 1)[1]

        def forward(request, context):
            self.counts[method] += 1
            is_lost = method == self.lost_method and self.counts[method] == 1
            reply, failure = None, None
            try:
                reply = self.channel.unary_unary(path)(request, timeout=TIMEOUT)
            except grpc.RpcError as error:
                failure = error
            if is_lost:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the connection was lost")
            if failure:
                context.abort(failure.code(), failure.details())
            return reply

        return grpc.unary_unary_rpc_method_handler(forward)

    def close(self):
        self.server.stop(None)
        self.channel.close()
