"""A small internet for one command: `unshare ... python3 world.py DIR -- COMMAND...`, in network and mount namespaces of its own.

Every address of 93.184.0.0/16 is served here, though none belongs to the machine: to Belljar they are public. Names end in .test
and are answered by a name server on 93.184.0.53; what was asked is written to DIR/asked. Servers: HTTP on 80 and 8081, TLS on 443 and
8443 when DIR holds cert.pem and key.pem (tls/NAME.pem for SNI NAME), on 4443 one that asks for a client certificate of ca.pem, an echo on 7, one that says its line first on 25, an HTTP proxy on
3129, a SOCKS5 proxy on 1081. With DIR/model, names one a line, the web servers are those names' and speak as models do
(tests/agents/model.py); DIR/log has what they were asked. Each HTTP answer tells method, target, Host,
the address it was reached at. Ends with the command's exit code.
"""
import base64, ctypes, gzip, hashlib, html, http.server, json, os, socket, ssl, struct, subprocess, sys, threading, urllib.parse

directory, command = sys.argv[1], sys.argv[sys.argv.index('--') + 1:]
NAMES = {
    'web.test': ['93.184.0.80'], 'other.test': ['93.184.0.81'], 'sub.web.test': ['93.184.0.82'], 'api.test': ['93.184.0.83'],
    'private.test': ['10.1.2.3'], 'loop.test': ['127.0.0.1'], 'meta.test': ['169.254.169.254'], 'mixed.test': ['10.1.2.3', '93.184.0.80'],
    'empty.test': [], 'expired.test': ['93.184.0.84'], 'self.test': ['93.184.0.85'], 'misnamed.test': ['93.184.0.86'],
    'echo.test': ['93.184.0.87'], 'client.test': ['93.184.0.88'],
}
asked = open(os.path.join(directory, 'asked'), 'w', buffering=1)
turns = {}


def run(*words):
    subprocess.run(words, check=True)


def addresses(name):
    if name == 'rebind.test':  # public the first time, the host's own after that
        turns[name] = turns.get(name, 0) + 1
        return ['93.184.0.80'] if turns[name] == 1 else ['127.0.0.1']
    return NAMES.get(name)


def answer_dns(query):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode('latin1').lower())
        at += 1 + query[at]
    kind = struct.unpack('>H', query[at + 1:at + 3])[0]
    name = '.'.join(labels)
    asked.write(name + '\n')
    if name.startswith('silent'):
        return None
    found = addresses(name)
    records = [] if not found or kind != 1 else found
    head = query[:2] + struct.pack('>HHHHH', 0x8180 if found is not None else 0x8183, 1, len(records), 0, 0)
    body = b''.join(b'\xc0\x0c' + struct.pack('>HHIH', 1, 1, 0, 4) + socket.inet_aton(a) for a in records)
    return head + query[12:at + 5] + body


def serve_dns():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(('93.184.0.53', 53))
    while True:
        query, peer = sock.recvfrom(4096)
        reply = answer_dns(query)
        if reply:
            sock.sendto(reply, peer)


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def answer(self):
        if self.headers.get('Upgrade') == 'websocket':  # RFC 6455; what frames hold comes back as it is
            key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
            accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
            self.wfile.write(('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                              'Sec-WebSocket-Accept: %s\r\n\r\n' % accept).encode())
            self.close_connection = True
            while data := self.connection.recv(65536):
                self.connection.sendall(data)
            return
        length = int(self.headers.get('Content-Length', 0))
        body = self.rfile.read(length)
        if self.headers.get('Host', '').split(':')[0] == 'echo.test':  # everything that came, in several spellings
            return self.echo(body)
        text = '%s %s host=%s at=%s body=%d\n' % (self.command, self.path, self.headers.get('Host'), self.connection.getsockname()[0], len(body))
        data = text.encode()
        path = os.path.join(directory, 'files') + self.path.split('?')[0]
        if self.path.startswith('/until-the-end'):  # no length; `?rude`: TLS does not say that this was all
            self.send_response(200)
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = True
            if isinstance(self.connection, ssl.SSLSocket) and not self.path.endswith('?rude'):
                self.connection.unwrap()
            return
        if self.path.startswith('/to/'):
            self.send_response(302)
            self.send_header('Location', 'http://' + self.path[4:])
            data = b''
        elif self.command in ('GET', 'HEAD') and os.path.isfile(path):
            data = open(path, 'rb').read()
            self.send_response(200)
        else:
            self.send_response(200)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(data)

    # `/stored` says again what came as X-Keep; `?field=NAME:VALUE` answers with that field, `gzip` compressed, `chunked` in pieces.
    kept = ''

    def echo(self, body):
        if self.path == '/stored':
            data = (Web.kept + '\n').encode()
            self.send_response(200)
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            return self.wfile.write(data)
        Web.kept = self.headers.get('X-Keep', Web.kept)
        shown = '%s\n%s\n%s' % (self.path, self.headers, body.decode('latin1'))
        seen = open(os.path.join(directory, 'seen'), 'a')
        seen.write(shown)
        seen.close()
        plain = shown.encode()
        data = plain + base64.b64encode(plain) + b'\n' + plain.hex().encode() + b'\n'
        escaped = json.dumps(shown).replace('/', '\\/').replace('+', '\\u002b')
        for text in (urllib.parse.quote(shown), urllib.parse.quote(shown, safe="/;,?:@&=+$-_.!~*'()#"), escaped, html.escape(shown).replace('+', '&#43;')):
            data += b'spelled: ' + text.encode() + b'\n'
        query = self.path.partition('?')[2]
        fields = [value.split(':', 1) for name, value in urllib.parse.parse_qsl(query) if name == 'field']
        self.send_response(200)
        for field in fields:
            self.send_header(*field)
        self.send_header('X-Spelled', urllib.parse.quote(self.headers.get('Authorization', 'none')))
        self.send_header('X-Echo', self.headers.get('Authorization', 'none'))
        if 'gzip' in query:
            data = gzip.compress(data)
            if not fields:
                self.send_header('Content-Encoding', 'gzip')
        if 'chunked' in query:  # cut everywhere
            if not any(name == 'Transfer-Encoding' for name, _ in fields):
                self.send_header('Transfer-Encoding', 'chunked')
            self.end_headers()
            for i in range(0, len(data), 3):
                self.wfile.write(b'%x\r\n%s\r\n' % (len(data[i:i + 3]), data[i:i + 3]))
            return self.wfile.write(b'0\r\n\r\n')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_get = do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer


def choose_certificate(connection, name, context):  # tls/NAME.pem, certificate and key, for who has one
    path = os.path.join(directory, 'tls', (name or 'none') + '.pem')
    if not os.path.exists(path):
        return None
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(path)
    own.load_verify_locations(os.path.join(directory, 'ca.pem'))  # for clients' certificates, where they are asked for
    connection.context = own
    return None


Site = Web
if os.path.exists(os.path.join(directory, 'model')):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../agents'))
    from model import Model as Site
    Site.log = os.path.join(directory, 'log')
    NAMES.update({name: ['93.184.0.91'] for name in open(os.path.join(directory, 'model')).read().split()})


def web(port, tls=False, wants_client=False):
    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 512
        daemon_threads = True

        def handle_error(self, request, client_address):  # a client that refuses a certificate is no news
            pass
    server = Server(('0.0.0.0', port), Site)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(directory, 'cert.pem'), os.path.join(directory, 'key.pem'))
        context.sni_callback = choose_certificate
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(os.path.join(directory, 'ca.pem'))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def lines(port, serve):
    listener = socket.create_server(('0.0.0.0', port), backlog=512)

    def loop():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client,), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def echo(client):
    with client:
        while data := client.recv(65536):
            client.sendall(data)


def greet(client):
    with client:
        client.sendall(b'220 hello at %s\r\n' % client.getsockname()[0].encode())
        client.recv(100)


def relay(a, b):
    def one(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    other = threading.Thread(target=one, args=(b, a), daemon=True)
    other.start()
    one(a, b)
    other.join()


def dial(name, port):
    found = addresses(name)
    return socket.create_connection((found[0] if found else INNER.get(name, name), port), 60)


INNER = {'only.upstream.test': '93.184.0.90'}  # names that the name server does not know


def http_proxy(client):  # CONNECT and whole URLs; user "me", password "p@ss"
    with client:
        head = b''
        while b'\r\n\r\n' not in head:
            head += client.recv(65536)
        method, target, _ = head.split(b'\r\n')[0].decode().split(' ')
        asked.write('http-proxy %s %s\n' % (method, target))
        if b'Proxy-Authorization: Basic bWU6cEBzcw==\r\n' not in head:
            return client.sendall(b'HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n')
        if method == 'CONNECT':
            host, port = target.rsplit(':', 1)
            with dial(host, int(port)) as server:
                client.sendall(b'HTTP/1.1 200 OK\r\n\r\n')
                relay(client, server)
        else:
            host, _, path = target[7:].partition('/')
            name, _, port = host.partition(':')
            with dial(name, int(port or 80)) as server:
                server.sendall(head.replace(target.encode(), b'/' + path.encode(), 1))
                relay(client, server)


def socks_proxy(client):
    with client:
        client.recv(2 + 1)
        client.sendall(b'\5\0')
        head = client.recv(4)
        name = client.recv(client.recv(1)[0]).decode() if head[3] == 3 else socket.inet_ntoa(client.recv(4))
        port = int.from_bytes(client.recv(2), 'big')
        asked.write('socks-proxy %s %d\n' % (name, port))
        with dial(name, port) as server:
            client.sendall(b'\5\0\0\1' + bytes(6))
            relay(client, server)


run('ip', 'link', 'set', 'lo', 'up')
run('ip', 'route', 'add', 'local', '93.184.0.0/16', 'dev', 'lo')
with open(os.path.join(directory, 'resolv.conf'), 'w') as conf:
    conf.write('nameserver 93.184.0.53\noptions timeout:30 attempts:2\n')
run('mount', '--bind', os.path.join(directory, 'resolv.conf'), os.path.realpath('/etc/resolv.conf'))
threading.Thread(target=serve_dns, daemon=True).start()
web(80), web(8081), lines(7, echo), lines(25, greet), lines(3129, http_proxy), lines(1081, socks_proxy)
if os.path.exists(os.path.join(directory, 'cert.pem')):
    web(443, tls=True), web(8443, tls=True)
if os.path.exists(os.path.join(directory, 'ca.pem')):
    web(4443, tls=True, wants_client=True)
# The command is an ordinary one: what this process holds over its namespaces is not passed on.
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
libc = ctypes.CDLL(None)
done = subprocess.run(command, preexec_fn=lambda: libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
