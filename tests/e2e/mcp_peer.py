# A client of `belljar mcp` over stdin and stdout, for the scripts beside it: one JSON text a line, answers awaited one by one.
import json
import subprocess
import threading


class Peer:
    def __init__(self, argv, capabilities=None, answer=None, content=None, env=None, cwd=None, roots=()):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=cwd)
        self.answer, self.content = answer, content  # what is said to elicitation/create
        self.roots = roots  # what is said to roots/list
        self.asked, self.forms, self.logged, self.serial = [], [], [], 0
        result = self.request('initialize', {'protocolVersion': '2025-06-18', 'capabilities': capabilities or {},
                                             'clientInfo': {'name': 'test', 'version': '1'}})
        self.instructions, self.capabilities = result['instructions'], result['capabilities']
        self.write({'method': 'notifications/initialized'})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def write(self, message):
        self.process.stdin.write(json.dumps({'jsonrpc': '2.0', **message}).encode() + b'\n')
        self.process.stdin.flush()

    def request(self, method, params):
        self.serial += 1
        self.write({'id': self.serial, 'method': method, 'params': params})
        while True:
            line = self.process.stdout.readline()
            assert line, 'the server has gone'
            message = json.loads(line)
            if message.get('method') == 'elicitation/create':
                self.asked.append(message['params']['message'])
                self.forms.append(message['params']['requestedSchema']['properties'])
                content = {'content': self.content} if self.content else {}
                self.write({'id': message['id'], 'result': {'action': self.answer, **content}})
            elif message.get('method') == 'roots/list':
                self.write({'id': message['id'], 'result': {'roots': [{'uri': 'file://' + root} for root in self.roots]}})
            elif message.get('method') == 'notifications/message':
                self.logged.append(message['params']['data'])
            elif message.get('id') == self.serial and 'method' not in message:
                assert 'result' in message or 'error' in message, message
                return message['result'] if 'result' in message else message

    def call(self, name, /, meta=None, **arguments):
        params = {'name': name, 'arguments': arguments}
        if meta:
            params['_meta'] = meta
        return self.request('tools/call', params)

    def text(self, name, /, **arguments):
        return self.call(name, **arguments)['content'][0]['text']


def in_thread(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
