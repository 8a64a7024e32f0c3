"""TLS in front of a unix socket: CERT KEY AUTHORITY|- SOCKET. Prints its port; with an authority clients must have a certificate of it."""
import socket
import ssl
import sys
import threading

certificate, key, authority, target = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
if authority != '-':
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority)
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(64)
print(listener.getsockname()[1], flush=True)


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(peer):
    try:
        peer = context.wrap_socket(peer, server_side=True)
        engine = socket.socket(socket.AF_UNIX)
        engine.connect(target)
    except OSError:
        peer.close()
        return
    threading.Thread(target=pump, args=(peer, engine), daemon=True).start()
    pump(engine, peer)


while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
