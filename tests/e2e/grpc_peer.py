"""gRPC over bytes, for tests. `grpc_peer.py serve HOST:PORT CERTIFICATE-AND-KEY.pem` says "ready" when it listens;
`grpc_peer.py ask HOST:PORT` calls each kind of method and prints what came of it, a line each."""
import os, sys, grpc
from concurrent import futures

role, place = sys.argv[1:3]


class Echo(grpc.GenericRpcHandler):
    def service(self, call):
        name = call.method.rsplit('/', 1)[1]
        if name == 'One':
            return grpc.unary_unary_rpc_method_handler(self.one)
        if name == 'Each':
            return grpc.stream_stream_rpc_method_handler(self.each)
        if name == 'Sum':
            return grpc.stream_unary_rpc_method_handler(lambda all, context: b'%d' % sum(len(one) for one in all))
        return None

    def one(self, request, context):
        key = dict(context.invocation_metadata()).get('x-key', '')
        print('key=' + key, flush=True)
        context.set_trailing_metadata((('x-end', 'after'), ('x-key', key)))
        if request == b'fail':
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, 'as asked')
        return b'echo ' + request + b' ' + key.encode()

    def each(self, requests, context):
        for request in requests:
            yield b'echo ' + request


def serve():
    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Echo()])
    pem = open(sys.argv[3], 'rb').read()
    server.add_secure_port(place, grpc.ssl_server_credentials([(pem, pem)]))
    server.start()
    print('ready', flush=True)
    server.wait_for_termination()


def ask():
    channel = grpc.secure_channel(place, grpc.ssl_channel_credentials())
    metadata = (('x-key', os.environ.get('API_KEY', '')),)

    def told(name, act):
        try:
            print(name, act(), flush=True)
        except grpc.RpcError as error:
            print(name, error.code().name, error.details(), flush=True)

    def one(request):
        answer, call = channel.unary_unary('/test.Echo/One').with_call(request, metadata=metadata, timeout=120)
        return answer.decode(), dict(call.trailing_metadata())

    def talk():  # the next is asked when the last has been answered
        heard = []
        def say():
            for word in (b'a', b'b', b'c'):
                yield word
                while not heard or heard[-1] != 'echo ' + word.decode():
                    threading.Event().wait(0.01)
        import threading
        for answer in channel.stream_stream('/test.Echo/Each')(say(), timeout=120):
            heard.append(answer.decode())
        return heard

    told('one', lambda: one(b'x'))
    told('fail', lambda: one(b'fail'))
    told('talk', talk)
    told('sum', lambda: channel.stream_unary('/test.Echo/Sum')(iter([b'x' * 100000] * 20), timeout=120))
    told('none', lambda: channel.unary_unary('/test.Echo/None')(b'x', timeout=120))
    told('refused', lambda: channel.unary_unary('/test.Other/One')(b'x', timeout=120))


serve() if role == 'serve' else ask()
