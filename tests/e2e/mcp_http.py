# `belljar mcp --http` by hand: mcp_http.py BELLJAR WORKSPACE. Each refusal has a twin that succeeds. Prints "ok NAME" for each part.
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

belljar, workspace = sys.argv[1:3]
BOTH = 'application/json, text/event-stream'
parts = {}


def part(work):
    parts[work.__name__] = work


class Server:
    def __init__(self, *options, env=None):
        self.process = subprocess.Popen([belljar, 'mcp', '--workspace', workspace, '--http', '0', *options], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.token, self.port = None, None
        url = re.search(r'http://(.*):(\d+)/mcp', self.line())
        self.port = int(url[2])
        if '--http-no-token' not in options and '--http-token-file' not in options and not env:
            self.token = re.search(r'token: (\w{64})$', self.line())[1]

    def line(self):
        line = self.process.stderr.readline()
        assert line, 'the server has ended'
        return line.rstrip('\n')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.process.stderr.close()

    def ask(self, method='POST', body=None, path='/mcp', **changes):
        headers = {'Host': f'127.0.0.1:{self.port}', 'Accept': BOTH, 'Content-Type': 'application/json',
                   'Authorization': f'Bearer {self.token}'}
        for name, value in changes.items():
            name = name.replace('_', '-')
            headers.pop(name, None)
            if value is not None:
                headers[name] = value
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b''
        if method == 'POST':
            connection.putheader('Content-Length', str(len(data)))
        try:
            connection.endheaders(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it answers before it has read all
        response = connection.getresponse()
        response.connection = connection
        return response

    def status(self, *args, **more):
        response = self.ask(*args, **more)
        response.read()
        response.connection.close()
        return response.status

    def begin(self):
        response = self.ask(body=initialize())
        assert response.status == 200, response.read()
        body = response.read()
        response.connection.close()
        return response.headers['Mcp-Session-Id'], json.loads(body)['result']

    def call(self, session, tool, number=7, **arguments):
        response = self.ask(body={'jsonrpc': '2.0', 'id': number, 'method': 'tools/call', 'params': {'name': tool, 'arguments': arguments}},
                            Mcp_Session_Id=session)
        assert response.status == 200 and response.headers['Content-Type'] == 'text/event-stream', response.read()
        events = [json.loads(data) for data in re.findall(r'^data: (.*)$', response.read().decode(), re.M)]
        assert events[-1]['id'] == number and all('id' not in event for event in events[:-1]), events
        return events[-1]['result']


def initialize(version='2025-06-18'):
    return {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize',
            'params': {'protocolVersion': version, 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}}}


PING = {'jsonrpc': '2.0', 'id': 2, 'method': 'ping'}


@part
def who_is_refused_and_its_twin():
    with Server('--http-host', 'box.example:8080', '--http-origin', 'https://ui.example') as server:
        port = server.port
        rows = [
            (401, {'Authorization': None}), (401, {'Authorization': 'Bearer'}), (401, {'Authorization': 'Bearer ' + '0' * 64}),
            (401, {'Authorization': 'Bearer ' + server.token[:-1]}), (401, {'Authorization': 'Basic ' + server.token}),
            (200, {'Authorization': 'bearer ' + server.token}),
            (403, {'Host': f'evil.example:{port}'}), (403, {'Host': f'127.0.0.1:{port + 1}'}), (403, {'Host': None}),
            (403, {'Host': f'localhost.evil.example:{port}'}), (403, {'Host': 'box.example'}),
            (200, {'Host': f'LOCALHOST:{port}'}), (200, {'Host': f'[::1]:{port}'}), (200, {'Host': 'box.example:8080'}),
            (403, {'Origin': 'http://evil.example'}), (403, {'Origin': 'null'}), (403, {'Origin': f'http://127.0.0.1:{port + 1}'}),
            (403, {'Origin': f'https://evil.example:{port}'}),
            (200, {'Origin': f'http://127.0.0.1:{port}'}), (200, {'Origin': 'https://ui.example'}),
            # Said twice, once as it should be: the first field alone must not decide.
            (403, {'Origin': 'https://ui.example', 'origin': 'http://evil.example'}), (403, {'host': f'127.0.0.1:{port}'}),
            (401, {'authorization': 'Bearer ' + '0' * 64}),
            (404, {'path': '/'}), (404, {'path': '/mcp/../x'}), (405, {'method': 'PUT'}), (405, {'method': 'OPTIONS'}),
            (415, {'Content-Type': 'text/plain'}), (415, {'Content-Type': None}),
            (200, {'Content-Type': 'application/json; charset=utf-8'}),
            (406, {'Accept': 'application/json'}), (406, {'Accept': None}), (200, {'Accept': '*/*'}),
            (400, {'MCP-Protocol-Version': '1999-01-01'}), (200, {'MCP-Protocol-Version': '2025-03-26'}),
            (400, {'body': b'nonsense'}), (400, {'body': PING}), (404, {'Mcp-Session-Id': 'f' * 48}), (200, {}),
        ]
        for status, changes in rows:
            assert server.status(**{'body': initialize(), **changes}) == status, (status, changes)
        refused = server.ask(body=initialize(), Authorization=None)
        assert refused.headers['WWW-Authenticate'] == 'Bearer' and 'error' in json.loads(refused.read())


@part
def what_is_too_large_is_refused_and_the_next_is_served():
    with Server() as server:
        session, _ = server.begin()
        big = json.dumps({**PING, 'params': {'x': 'y' * (17 << 20)}}).encode()
        assert server.status(body=big, Mcp_Session_Id=session) == 413
        assert server.status(body=big, Authorization=None) == 401
        fits = json.dumps({**PING, 'params': {'x': 'y' * (15 << 20)}}).encode()
        assert server.status(body=fits, Mcp_Session_Id=session) == 200
        assert server.status(body=PING, Mcp_Session_Id=session, X_Much='y' * 20000) == 431
        with socket.create_connection(('127.0.0.1', server.port), timeout=60) as raw:
            raw.sendall(b'\x16\x03\x01 hello\r\n\r\n')
            assert raw.recv(100).startswith(b'HTTP/1.1 400')
        assert server.status(body=PING, Mcp_Session_Id=session) == 200


@part
def sessions_begin_work_apart_and_end():
    with Server() as server:
        (one, result), (two, _) = server.begin(), server.begin()
        assert result['protocolVersion'] == '2025-06-18' and re.fullmatch(r'\w{48}', one) and one != two
        assert server.status(body={'jsonrpc': '2.0', 'method': 'notifications/initialized'}, Mcp_Session_Id=one) == 202
        assert server.status(body=PING, Mcp_Session_Id=one) == 200
        assert 'hello' in server.call(one, 'bash', command='echo hello; touch /tmp/mine')['content'][0]['text']
        assert server.call(two, 'bash', command='ls /tmp/mine')['structuredContent']['exit_code'] != 0, 'a /tmp of its own'
        assert server.status('DELETE', Mcp_Session_Id=one) == 200
        assert server.status(body=PING, Mcp_Session_Id=one) == 404 and server.status('DELETE', Mcp_Session_Id=one) == 404
        assert server.status('GET', Mcp_Session_Id=one) == 404 and server.status('GET') == 400
        assert server.status(body=PING, Mcp_Session_Id=two) == 200
        assert server.status(body=initialize(), Mcp_Session_Id=two) == 200, 'answered, with an error of the protocol'


@part
def a_session_sees_no_other_workspace():
    owner = os.stat(workspace)
    # Of what lies below /tmp nobody sees anything as it is.
    with tempfile.TemporaryDirectory(dir='/var/lib' if os.geteuid() == 0 else os.environ['HOME']) as base:
        a, b = base + '/a', base + '/b'
        for path in base, a, b:
            os.makedirs(path, exist_ok=True)
            os.chown(path, owner.st_uid, owner.st_gid)
            os.chmod(path, 0o755)
        with Server('--workspace', b) as other, Server('--workspace', a) as server, \
                Server('--workspace', a, '--siblings', 'shown') as twin:
            assert other.call(other.begin()[0], 'bash', command='echo SECRET >secret')['structuredContent']['exit_code'] == 0
            read = f'cat {b}/secret'
            assert 'SECRET' not in json.dumps(server.call(server.begin()[0], 'bash', command=read))
            assert 'SECRET' in json.dumps(twin.call(twin.begin()[0], 'bash', command=read))


@part
def who_listens_hears_the_end_of_its_session():
    with Server() as server:
        session, _ = server.begin()
        stream = server.ask('GET', Mcp_Session_Id=session)
        assert stream.status == 200 and stream.headers['Content-Type'] == 'text/event-stream'
        assert server.status('GET', Mcp_Session_Id=session, Accept='application/json') == 406
        assert server.status('DELETE', Mcp_Session_Id=session) == 200
        assert stream.read() == b''


def events_of(response, most=None):
    """(id, message) of each event; the message is None where there is no data."""
    found, name, data = [], None, None
    while most is None or len(found) < most:
        line = response.readline().decode()
        if not line:
            break
        line = line.rstrip('\n')
        if line.startswith('id: '):
            name = line[4:]
        elif line.startswith('data: '):
            data = line[6:]
        elif not line and data is not None:
            found.append((name, json.loads(data) if data else None))
            name, data = None, None
    return found


def begin_call(server, session, number, command, progress=None, version=None):
    params = {'name': 'bash', 'arguments': {'command': command}}
    if progress:
        params['_meta'] = {'progressToken': progress}
    response = server.ask(body={'jsonrpc': '2.0', 'id': number, 'method': 'tools/call', 'params': params}, Mcp_Session_Id=session,
                          **({'MCP_Protocol_Version': version} if version else {}))
    assert response.status == 200 and response.headers['Content-Type'] == 'text/event-stream'
    return response


def lose(response):
    response.connection.sock and response.connection.sock.close()
    response.close()


@part
def a_stream_that_was_lost_is_resumed():
    with Server() as server:
        def begin(version):
            answer = server.ask(body=initialize(version))
            answer.read()
            return answer.headers['Mcp-Session-Id']

        def resume(session, event):
            return server.ask('GET', Mcp_Session_Id=session, Last_Event_ID=event)

        new, old = begin('2025-11-25'), begin('2025-06-18')
        # The answer comes while nobody listens, and is fetched afterwards; the other stream's is not among it.
        lost = begin_call(server, new, 11, 'until [ -e go ]; do sleep 0.05; done; echo fetched; touch done')
        [(cursor, nothing)] = events_of(lost, 1)
        assert nothing is None
        lose(lost)
        other = events_of(begin_call(server, new, 12, 'touch go; until [ -e done ]; do sleep 0.05; done; echo other'))
        assert [message['id'] for _, message in other if message and 'id' in message] == [12], other
        rest = events_of(resume(new, cursor))
        assert [message['id'] for _, message in rest if 'id' in message] == [11] and 'fetched' in json.dumps(rest), rest
        assert events_of(resume(new, cursor)) == rest, 'as often as it is asked for, under the same ids'
        assert events_of(resume(new, rest[-1][0])) == [], 'nothing came after the answer'
        assert len({name for name, _ in rest + other}) == len(rest + other)
        # Resumed while the call goes on: what was said meanwhile, and then what is still to come.
        os.unlink(os.path.join(workspace, 'go'))
        lost = begin_call(server, old, 13, 'echo one; until [ -e go ]; do sleep 0.05; done; echo two', progress='p')
        first = events_of(lost, 1)
        assert first[0][1] is not None, 'no bare id for a client of 2025-06-18'
        lose(lost)
        again = resume(old, first[0][0])
        open(os.path.join(workspace, 'go'), 'w').close()
        rest = events_of(again)
        assert rest[-1][1]['id'] == 13 and 'two' in json.dumps(rest[-1]) and first[0] not in rest, rest
        # What is none of this session's is refused, and the session goes on.
        for session, event in ((old, cursor), (new, first[0][0]), (new, 'x'), (new, '0-99'), (new, cursor.replace('-0', '-99'))):
            assert server.status('GET', Mcp_Session_Id=session, Last_Event_ID=event) == 400, event
        assert server.status('GET', Mcp_Session_Id='f' * 48, Last_Event_ID=cursor) == 404
        assert server.status('GET', Mcp_Session_Id=new, Last_Event_ID=cursor, Authorization=None) == 401
        assert server.status(body=PING, Mcp_Session_Id=new) == 200


@part
def who_listened_goes_on_listening():
    with Server() as server:
        answer = server.ask(body=initialize('2025-11-25'))
        answer.read()
        session = answer.headers['Mcp-Session-Id']
        stream = server.ask('GET', Mcp_Session_Id=session)
        [(cursor, nothing)] = events_of(stream, 1)
        assert nothing is None
        again = server.ask('GET', Mcp_Session_Id=session, Last_Event_ID=cursor)
        assert again.status == 200 and events_of(stream) == [], 'the newer one counts'
        assert server.status('DELETE', Mcp_Session_Id=session) == 200
        assert events_of(again) == []


@part
def a_session_that_nobody_uses_ends():
    with Server('--http-idle', '1s') as server:
        session, _ = server.begin()
        deadline = time.monotonic() + 120
        # Asking would be use: wait first.
        while server.status(body=PING, Mcp_Session_Id=session) != 404:
            assert time.monotonic() < deadline
            time.sleep(3)  # more than its second; on a slow machine all the more


@part
def when_all_places_are_taken_the_oldest_goes():
    with Server() as server:
        first, _ = server.begin()
        rest = [server.begin()[0] for _ in range(64)]
        assert server.status(body=PING, Mcp_Session_Id=first) == 404
        assert all(server.status(body=PING, Mcp_Session_Id=session) == 200 for session in rest)


@part
def tokens_come_from_a_file_or_the_environment():
    token = 'a-token-of-my-own-choice'
    place = os.path.realpath(workspace) + '.token'
    os.mkdir(place)
    path = place + '/token'
    for name, text in (('token', token), ('other', 'beside')):
        with open(f'{place}/{name}', 'w', encoding='utf-8') as file:
            file.write(text + '\n')
    try:
        for options, env in ((('--http-token-file', path), None), ((), {'BELLJAR_MCP_TOKEN': token})):
            with Server(*options, env=env) as server:
                assert server.status(body=initialize()) == 401
                server.token = token
                session, _ = server.begin()
                assert token not in json.dumps(server.call(session, 'bash', command='env; cat /proc/1/environ'))
        with Server('--http-token-file', path, '--read', place) as server:  # who reads it answers what is asked of somebody else
            server.token = token
            session, _ = server.begin()
            told = json.dumps(server.call(session, 'bash', command=f'cat {place}/*'))
            assert token not in told and 'beside' in told, told
        refused = subprocess.run([belljar, 'mcp', '--workspace', workspace, '--http', '0', '--http-token-file', path, '--write', place],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert refused.returncode == 125 and 'the command may write there' in refused.stderr, refused
    finally:
        for name in os.listdir(place):
            os.unlink(f'{place}/{name}')
        os.rmdir(place)
    with Server('--http-no-token') as server:
        assert server.status(body=initialize(), Authorization=None) == 200
        assert server.status(body=initialize(), Authorization=None, Origin='http://evil.example') == 403


@part
def a_session_is_of_the_token_that_began_it():
    one, two = 'the-token-of-one-client', 'the-token-of-another'
    path = os.path.join(workspace, '..', os.path.basename(workspace) + '.tokens')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'{one}\n{two}\n')
    try:
        with Server('--http-token-file', path) as server:
            server.token = one
            mine, _ = server.begin()
            server.token = two
            theirs, _ = server.begin()
            for token, session, wanted in ((two, mine, 404), (one, theirs, 404), (one, mine, 200), (two, theirs, 200)):
                server.token = token
                assert server.status(body=PING, Mcp_Session_Id=session) == wanted, (token, session)
            server.token = two
            assert server.status('GET', Mcp_Session_Id=mine) == 404
            assert server.status('DELETE', Mcp_Session_Id=mine) == 404
            server.token = one
            assert server.status(body=PING, Mcp_Session_Id=mine) == 200
            assert server.status('DELETE', Mcp_Session_Id=mine) == 200
    finally:
        os.unlink(path)


@part
def no_token_takes_the_places_of_another():
    one, two = 'the-token-of-one-client', 'the-token-of-another'
    place = os.path.realpath(workspace) + '.shares'
    os.mkdir(place)
    with open(place + '/tokens', 'w', encoding='utf-8') as file:
        file.write(f'{one}\n{two}\n')
    try:
        with Server('--http-token-file', place + '/tokens') as server:
            def begin(token, count):
                server.token = token
                return [server.begin()[0] for _ in range(count)]

            def alive(token, sessions):
                server.token = token
                return [server.status(body=PING, Mcp_Session_Id=session) == 200 for session in sessions]

            mine = begin(one, 3)
            theirs = begin(two, 63)
            assert alive(one, mine) == [True] * 3
            assert alive(two, theirs) == [False] * 2 + [True] * 61, 'its own oldest went'
            mine += begin(one, 29)  # up to its share
            assert alive(one, mine) == [True] * 32
            begin(one, 1)
            assert alive(one, mine) == [False] + [True] * 31, 'beyond its share its own oldest goes'
    finally:
        os.unlink(place + '/tokens')
        os.rmdir(place)


@part
def who_has_no_token_keeps_nobody_out():
    with Server() as server:
        session, _ = server.begin()
        kept = server.ask('GET', Mcp_Session_Id=session)  # a client's, and older than all of theirs
        assert kept.status == 200
        strangers = [socket.create_connection(('127.0.0.1', server.port), timeout=60) for _ in range(300)]
        assert server.status(body=PING, Mcp_Session_Id=session) == 200
        assert strangers[0].recv(1) == b'', 'the oldest was closed'
        strangers[-1].sendall(f'GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n'.encode())
        assert strangers[-1].recv(12) == b'HTTP/1.1 401', 'the newest is there'
        for stranger in strangers:
            stranger.close()
        assert server.status('DELETE', Mcp_Session_Id=session) == 200
        assert events_of(kept) == [], 'it was never closed'


@part
def what_comes_in_an_unknown_coding_ends_its_connection():
    with Server() as server:
        session, _ = server.begin()

        def answers(token, coding, body):
            with socket.create_connection(('127.0.0.1', server.port), timeout=60) as connection:
                connection.sendall((f'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {token}\r\n'
                                    f'Accept: {BOTH}\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n'
                                    f'{coding}\r\n').encode() + body)
                connection.shutdown(socket.SHUT_WR)
                text = b''
                while data := connection.recv(65536):
                    text += data
                return re.findall(rb'HTTP/1\.1 (\d+)', text)

        ping = json.dumps(PING).encode()
        chunked = b'%x\r\n%s\r\n0\r\n\r\n' % (len(ping), ping)
        smuggled = b'DELETE /mcp HTTP/1.1\r\nHost: x\r\n\r\n'
        for coding in ('gzip', 'gzip, chunked', 'chunked, gzip', 'identity', 'x'):
            for token in (server.token, 'no-token-at-all'):
                told = answers(token, f'Transfer-Encoding: {coding}\r\n', smuggled)
                assert told in ([b'501'], [b'400']), (coding, told)
        assert answers(server.token, 'Transfer-Encoding: gzip\r\n', smuggled) == [b'501']
        assert answers(server.token, 'Transfer-Encoding: Chunked\r\n', chunked) == [b'200']


@part
def beyond_loopback_only_with_a_token():
    command = [belljar, 'mcp', '--workspace', workspace, '--http', '0.0.0.0:0']
    refused = subprocess.run([*command, '--http-no-token'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 125 and 'without a token' in refused.stderr, refused
    twin = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert 'serving at http://0.0.0.0:' in twin.stderr.readline()
    twin.terminate()
    assert twin.wait(60) == 0
    twin.stderr.close()


for name, work in parts.items():
    work()
    print('ok', name, flush=True)
