"""The terminal interfaces of Claude Code, Codex, Gemini CLI and opencode, bare and in the jar, on a pty with a terminal emulator.

    python3 screen.py BELLJAR AGENTS [--model FILE] [--only NAME...] [--keep]

BELLJAR: the program. AGENTS: a directory with node_modules/.bin of the four. --model: model.py, else the one beside this file.
--only: agents (claude), cases (resize), or both (claude:resize). Needs pyte (Debian: python3-pyte, for /usr/bin/python3) and a user
who has a name. As root the jar gets --allow-root-uid. Prints a line for each case, `ok NAME` or `not ok NAME: why`, and the screen
where something is missing; the exit code is 1 where a case failed. Waits for what is on the screen, and gives up after a minute.
"""
import argparse
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte

PATIENCE = 60

# --- a terminal

# What a terminal of today answers; every program of the four asks for some of these.
ANSWERS = [
    (re.compile(rb'\x1b\[6n'), lambda t, m: b'\x1b[%d;%dR' % (t.screen.cursor.y + 1, t.screen.cursor.x + 1)),
    (re.compile(rb'\x1b\[5n'), lambda t, m: b'\x1b[0n'),
    (re.compile(rb'\x1b\[0?c'), lambda t, m: b'\x1b[?62;22c'),
    (re.compile(rb'\x1b\[>0?c'), lambda t, m: b'\x1b[>1;10;0c'),
    (re.compile(rb'\x1b\[>0?q'), lambda t, m: b'\x1bP>|screen 1\x1b\\'),
    (re.compile(rb'\x1b\[\?u'), lambda t, m: b'\x1b[?0u'),
    (re.compile(rb'\x1b\](1[01]);\?(?:\x07|\x1b\\)'), lambda t, m: b'\x1b]%s;rgb:1111/2222/3333\x1b\\' % m[1]),
    (re.compile(rb'\x1b\]4;(\d+);\?(?:\x07|\x1b\\)'), lambda t, m: b'\x1b]4;%s;rgb:aaaa/bbbb/cccc\x1b\\' % m[1]),
    (re.compile(rb'\x1b\[\?(\d+)\$p'), lambda t, m: b'\x1b[?%s;2$y' % m[1]),
]
# What pyte would show as text, or take for something else.
UNKNOWN = re.compile(rb'\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_^X][^\x1b]*\x1b\\|\x1b\[[<=>][0-?]*[ -/]*[@-~]|'
                     rb'\x1b\[\?[0-9;]*[ -/]*[@-gi-km-~]|\x1b\[[0-9;:]*[ -/]+[@-~]|\x1b\[[0-9]*[StTu]|\x1b\[[0-9]+;[0-9;]*t')
BEGUN = re.compile(rb'\x1b(\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[P_^X][^\x1b]*\x1b?|[ -/]*)?$')
# Private modes that a program must not leave behind.
LASTING = {9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 47, 1047, 1049, 2004, 2026, 2031}


class Terminal:
    def __init__(self, words, cwd, environment, columns=100, rows=30):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.rest, self.modes, self.asked, self.links = b'', set(), set(), set()
        self.title, self.code = '', None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
                os.chdir(cwd)
                os.execvpe(words[0], words, environment)
            finally:
                os._exit(127)

    def show(self, data):
        data = self.rest + data
        begun = BEGUN.search(data)
        self.rest = data[begun.start():] if begun and len(begun[0]) < 4096 else b''
        data = data[:len(data) - len(self.rest)]
        for numbers, how in re.findall(rb'\x1b\[\?([0-9;]+)([hl])', data):
            for number in numbers.split(b';'):
                (self.modes.add if how == b'h' else self.modes.discard)(int(number))
        for title in re.findall(rb'\x1b\][02];([^\x07\x1b]*)', data):
            self.title = title.decode('utf8', 'replace').strip()
        self.links.update(re.findall(rb'\x1b\]8;[^;]*;([^\x07\x1b]+)', data))
        self.stream.feed(UNKNOWN.sub(b'', data))
        for pattern, answer in ANSWERS:
            for found in pattern.finditer(data):
                self.asked.add(found[0])
                self.type(answer(self, found))

    def shown(self):
        return '\n'.join('  | ' + line.rstrip() for line in self.screen.display if line.strip())

    def read(self, seconds):
        """True: something came; False: the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return None
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b''
        if data:
            self.show(data)
        return bool(data)

    def text(self):
        return '\n'.join(line.rstrip() for line in self.screen.display)

    def sees(self, wanted, seconds=PATIENCE):
        """Until the screen shows what the pattern says, or the call says."""
        there = wanted if callable(wanted) else lambda: re.search(wanted, self.text())
        until = time.monotonic() + seconds
        while not there():
            if time.monotonic() > until or self.read(0.5) is False and not there():
                return False
        return True

    def wants(self, wanted, why=''):
        if not self.sees(wanted):
            raise Failed('%s %s\n%s' % (why or 'not seen:', wanted if isinstance(wanted, str) else '', self.shown()))

    def settle(self, quiet=1.0):
        """Until what it draws is drawn, and nothing comes for a while."""
        until = time.monotonic() + PATIENCE / 4
        while time.monotonic() < until and self.read(quiet):
            pass

    def type(self, keys):
        keys = keys.encode() if isinstance(keys, str) else keys
        while keys:
            try:
                keys = keys[os.write(self.fd, keys):]
            except OSError:
                return

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def is_cooked(self):
        local = termios.tcgetattr(self.fd)[3]
        return bool(local & termios.ICANON and local & termios.ECHO and local & termios.ISIG)

    def left_on(self):
        return sorted(self.modes & LASTING) + (['cursor'] if self.screen.cursor.hidden else [])

    def ends(self, surely=True):
        """Until the program has ended; with `surely` None, or until it wants another ^C."""
        until = time.monotonic() + PATIENCE
        while self.code is None and time.monotonic() < until:
            gone, status = os.waitpid(self.pid, os.WNOHANG)
            if gone:
                self.code = os.waitstatus_to_exitcode(status)
            elif surely is None and re.search(r'(?i)again to', self.text()):
                return False
            self.read(0.1)
        while self.read(0.2):
            pass
        return self.code is not None

    def close(self):
        if self.fd < 0:
            return
        if self.code is None:
            for sent in (signal.SIGHUP, signal.SIGKILL):
                try:
                    os.kill(self.pid, sent)
                except OSError:
                    pass
                for _ in range(50):
                    if self.code is None and os.waitpid(self.pid, os.WNOHANG)[0]:
                        self.code = -1
                    if self.code is None:
                        self.read(0.1)
                if self.code is not None:
                    break
        os.close(self.fd)
        self.fd = -1


class Failed(Exception):
    pass


def must(said, why):
    if not said:
        raise Failed(why)


# --- the four

class Agent:
    """What is different in each: how it is told of the model, what it asks first, what it shows."""
    variables, arguments, bare_arguments = {}, [], []
    questions, hello, busy, stopped, ready = [], 'Hello from the model', r'word\d+', '', ''
    stop, leave = '\x03', '\x03'
    yes, approve, make = ['\r'], '', '[[sh echo made > made.txt]]'

    def prepare(self, home, port):
        pass

    def environment(self, port):
        return {name: value % {'port': port} for name, value in self.variables.items()}


class Claude(Agent):
    name = 'claude'
    variables = {'ANTHROPIC_BASE_URL': 'http://127.0.0.1:%(port)d', 'ANTHROPIC_AUTH_TOKEN': 'token', 'DISABLE_AUTOUPDATER': '1'}
    arguments = ['--permission-mode', 'default']
    questions = ['Choose the text style', 'Press Enter to continue', 'Yes, I trust this folder']
    ready, stopped, approve = 'for shortcuts|manual mode on', 'Interrupted', 'Do you want to proceed'


class ClaudeWithKey(Claude):
    """Asks, beside, whether the key may be used."""
    name = 'claude-key'
    questions, yes = ['Detected a custom API key'], ['\x1b[A', '\r']
    key = 'sk-ant-api03-' + '0123456789' * 8
    variables = {'ANTHROPIC_BASE_URL': 'http://127.0.0.1:%(port)d', 'ANTHROPIC_API_KEY': key, 'DISABLE_AUTOUPDATER': '1'}

    def prepare(self, home, port):
        text = {'hasCompletedOnboarding': True, 'projects': {home + '/work': {'hasTrustDialogAccepted': True}}}
        write(home + '/.claude.json', json.dumps(text))


class Codex(Agent):
    name = 'codex'
    bare_arguments = ['--no-daemon']
    questions = ['Trust this folder']
    ready, stopped, approve = 'for shortcuts', 'interrupted', 'Would you like to run'
    # The model decides, says its documentation.
    make = ('[[tool exec_command {"cmd": "echo made > made.txt", "sandbox_permissions": "require_escalated",'
            ' "justification": "to make it"}]]')

    def prepare(self, home, port):
        write(home + '/.codex/config.toml', CODEX % port)
        subprocess.run(['git', 'init', '-q', home + '/work'], check=True)


class Gemini(Agent):
    name = 'gemini'
    variables = {'GOOGLE_GEMINI_BASE_URL': 'http://127.0.0.1:%(port)d', 'GEMINI_API_KEY': 'key'}
    questions = ['Do you trust the files', 'How would you like to authenticate', 'Enter Gemini API Key']
    ready, stopped, approve = 'Type your message', 'ancelled', 'Allow execution'


class Opencode(Agent):
    name = 'opencode'
    ready, stopped = 'Ask anything|ctrl\\+p commands', 'interrupted'
    stop = '\x1b'

    def prepare(self, home, port):
        write(home + '/.config/opencode/opencode.json', OPENCODE % port)


CODEX = '''model = "m"
model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "http://127.0.0.1:%d/v1"
wire_api = "responses"
'''
OPENCODE = '''{"model": "mine/m", "permission": {"bash": "ask"}, "provider": {"mine": {"npm": "@ai-sdk/openai-compatible", "name": "mine",
 "options": {"baseURL": "http://127.0.0.1:%d/v1", "apiKey": "k"}, "models": {"m": {"name": "m"}}}}}'''
AGENTS = [Claude(), ClaudeWithKey(), Codex(), Gemini(), Opencode()]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as out:
        out.write(text)


class Place:
    """A home and a workspace of one case."""

    def __init__(self, suite, agent):
        self.suite, self.agent = suite, agent
        self.home = tempfile.mkdtemp(prefix='belljar-screen-', dir='/var/tmp')
        self.terminals, self.fresh = [], True
        self.work = self.home + '/work'
        os.mkdir(self.work)
        agent.prepare(self.home, suite.port)

    def environment(self, **more):
        # Of root's jar, too: what was answered in another home is no answer here.
        own = {'HOME': self.home, 'XDG_STATE_HOME': self.home + '/.local/state',
               'PATH': self.suite.bin + ':/usr/local/bin:/usr/bin:/bin', 'TERM': 'xterm-256color', 'LANG': 'C.UTF-8',
               'COLORTERM': 'truecolor', 'VTE_VERSION': '7600', 'SHELL': '/bin/bash', 'USER': os.environ.get('USER', 'user')}
        return dict(own, **self.agent.environment(self.suite.port), **more)

    def words(self, inside, arguments=()):
        name = self.agent.name.split('-')[0]
        if not inside:
            return [name] + self.agent.bare_arguments + self.agent.arguments + list(arguments)
        return self.suite.run + ['--host-port', str(self.suite.port), '--', name] + self.agent.arguments + list(arguments)

    def open(self, words, **more):
        self.terminals.append(Terminal(words, self.work, self.environment(**more)))
        return self.terminals[-1]

    def start(self, inside, arguments=()):
        return self.open(self.words(inside, arguments))

    def start_answered(self, inside):
        """Up to where it takes a prompt."""
        terminal = self.start(inside)
        self.answer(terminal)
        return terminal

    def answer(self, terminal):
        """As the function; a fresh home is asked everything."""
        fresh, self.fresh = self.fresh, False
        return answer(terminal, self.agent, fresh)

    def close(self):
        for terminal in self.terminals:
            terminal.close()

    def remove(self):
        shutil.rmtree(self.home, ignore_errors=True)


def answer(terminal, agent, all_are_asked):
    """Yes, to whatever it asks before it takes a prompt; `all_are_asked`: every question comes. Returns what it asked."""
    asked = []
    left = list(agent.questions)
    while True:
        # Some show where a prompt will be, and ask then.
        terminal.wants('|'.join(left if all_are_asked and left else left + [agent.ready]))
        if left and not any(re.search(each, terminal.text()) for each in left):
            terminal.settle()
        now = next((each for each in left if re.search(each, terminal.text())), None)
        if now is None:
            return asked
        terminal.settle()
        for _ in range(3):  # which answer is offered first has changed
            if not re.search('Yes', now) or re.search('\u276f ' + now, terminal.text()):
                break
            terminal.type('\x1b[B')
            terminal.settle()
        for key in agent.yes:
            terminal.type(key)
            terminal.settle()
        if now not in asked:
            asked.append(now)
        terminal.wants(lambda: not re.search(now, terminal.text()), 'asks on: ' + now)
        terminal.settle(0.5)
        if not re.search(now, terminal.text()):  # it may have been drawn anew
            left.remove(now)


def prompt(terminal, text):
    """Types it, waits until it stands there, and sends it."""
    terminal.settle()
    terminal.type(text)
    last = re.escape(text[-12:])
    terminal.wants(last)
    terminal.settle(0.5)  # what comes in one piece is a paste to some, and its end no Enter
    terminal.type('\r')


def quit_agent(terminal, agent):
    """^C, and another where it says that it wants two."""
    for again in (False, True):
        terminal.type(agent.leave)
        if terminal.ends(again or None):
            break
    must(terminal.code is not None, 'does not end at ^C\n' + terminal.shown())
    return terminal.code


# --- cases: each gets (place, inside)

def case_first(place, inside):
    """What is asked first is asked once; outside the answers of an inside change nothing."""
    agent = place.agent
    for turn in range(2):
        terminal = place.start(inside)
        asked = place.answer(terminal)
        must(asked == (agent.questions if turn == 0 else []), 'asked at start %d: %s' % (turn + 1, asked))
        prompt(terminal, 'hello there')
        terminal.wants(agent.hello)
        terminal.settle()
        quit_agent(terminal, agent)
        terminal.close()
    if inside and agent.questions:
        terminal = place.start(False)
        terminal.wants('|'.join(agent.questions), 'answered inside, and not asked bare:')
        terminal.close()


def case_end(place, inside):
    """^C ends it with 0, and leaves the terminal as it was."""
    terminal = place.start_answered(inside)
    terminal.settle()
    code = quit_agent(terminal, place.agent)
    must(code == 0, 'exit code %d' % code)
    must(terminal.is_cooked(), 'the terminal is raw')
    must(not terminal.left_on(), 'left on: %s' % terminal.left_on())
    terminal.close()


def case_resize(place, inside):
    """The layout follows the window: nothing of the old width is left, what is drawn across reaches the new edge."""
    terminal = place.start_answered(inside)
    terminal.settle()
    terminal.resize(72, 24)
    terminal.settle()
    terminal.wants(place.agent.ready)
    prompt(terminal, 'hello ' + 'x' * 40)
    terminal.wants(place.agent.hello)
    terminal.resize(110, 30)
    terminal.settle()
    terminal.wants(lambda: re.search(place.agent.ready, terminal.text()) and max(map(len, terminal.text().split('\n'))) > 80,
                   'not drawn to the new width')
    terminal.close()


def case_paste(place, inside):
    """Two kilobytes in brackets are one prompt, whole."""
    terminal = place.start_answered(inside)
    terminal.settle()
    terminal.wants(lambda: 2004 in terminal.modes, 'no bracketed paste')
    text = '\n'.join('line %03d of what is pasted, ' % n for n in range(60)) + 'the end.'
    terminal.type(b'\x1b[200~' + text.encode() + b'\x1b[201~')
    terminal.settle()
    terminal.type('\r')
    terminal.wants(place.agent.hello)
    with open(place.suite.log) as log:
        said = [json.loads(line).get('prompt') or '' for line in log]
    must(any('line 000' in one and 'line 059' in one and 'the end.' in one for one in said), 'the model got something else')
    terminal.close()


def case_interrupt(place, inside):
    """A stream is stopped, and the next prompt is answered."""
    agent = place.agent
    terminal = place.start_answered(inside)
    prompt(terminal, '[[slow]] words')
    terminal.wants(agent.busy)
    for _ in range(3 if agent.stop == '\x1b' else 1):
        terminal.type(agent.stop)
        if terminal.sees('(?i)' + agent.stopped, 2):
            break
    terminal.wants('(?i)' + agent.stopped)
    prompt(terminal, 'hello there')
    terminal.wants(agent.hello)
    terminal.close()


def case_suspend(place, inside):
    """^Z gives the shell its terminal, fg gives it back."""
    agent = place.agent
    answered = place.start_answered(inside)
    answered.settle()
    quit_agent(answered, agent)
    answered.close()
    shell = place.open(['bash', '--norc', '--noprofile', '-i'], PS1='ready> ')
    shell.wants('ready>')
    shell.type(' '.join(place.words(inside)) + '\r')
    shell.wants(agent.ready)
    shell.settle()
    shell.type('\x1a')
    shell.wants('Stopped')
    shell.wants('ready>')
    # bash's own paste mode is on at its prompt.
    shell.type('printf "%s\\n" mode-"$(stty -a | grep -o -- "-*icanon")"\r')
    shell.wants('mode-icanon')
    must(not [mode for mode in shell.left_on() if mode != 2004], 'stopped with %s' % shell.left_on())
    shell.type('clear; fg\r')
    shell.wants(agent.ready)
    shell.settle()
    shell.type('back again')
    shell.wants('back again')
    gone = r'ready>\s*$'
    for _ in range(3):  # the first may empty the line
        shell.type(agent.leave)
        shell.sees('(?i)again to|' + gone, 10)
        if re.search('(?i)again to', shell.text()):
            shell.type(agent.leave)
            shell.wants(gone)
        if re.search(gone, shell.text()):
            break
    shell.type('echo code-$?\r')
    shell.wants(r'code-\d')
    must(not [mode for mode in shell.left_on() if mode != 2004], 'ended with %s' % shell.left_on())
    shell.close()


def case_approve(place, inside):
    """A tool that the user allows in the interface runs."""
    agent = place.agent
    terminal = place.start_answered(inside)
    prompt(terminal, agent.make)
    terminal.wants((agent.approve or 'Permission required') + r'|RESULT\(')
    if not re.search(r'RESULT\(', terminal.text()):
        must(not os.path.exists(place.work + '/made.txt'), 'made before it was allowed')
        terminal.settle()
        terminal.type('\r')
    terminal.wants(r'RESULT\(')
    must(os.path.exists(place.work + '/made.txt'), 'nothing was made\n' + terminal.shown())
    terminal.close()


def case_looks(place, inside):
    """Bare and inside the same is on the screen, in the same colours, and the same was asked of the terminal."""
    if not inside:
        return
    seen = []
    for side in (False, True):
        terminal = place.start_answered(side)
        quit_agent(terminal, place.agent)
        terminal.close()
        terminal = place.start_answered(side)
        terminal.settle()
        prompt(terminal, 'hello there')
        terminal.wants(place.agent.hello)
        terminal.settle()
        colours = {(cell.fg, cell.bg, cell.bold, cell.reverse, cell.underscore, cell.italics)
                   for row in terminal.screen.buffer.values() for cell in row.values() if cell.data.strip()}
        seen.append((terminal.modes & LASTING, terminal.asked, terminal.title, colours, terminal.links))
        terminal.close()
    for what, bare, jar in zip(('modes', 'queries', 'title', 'colours', 'links'), *seen):
        if what == 'colours':  # of what is shown for a time only
            must(len(bare & jar) >= 0.6 * len(bare), 'colours: bare %s, inside %s' % (bare, jar))
        else:
            if what == 'queries':  # Claude asks for these two modes at some starts, bare as well
                bare, jar = (one - {b'\x1b[?2026$p', b'\x1b[?1016$p'} for one in (bare, jar))
            must(bare == jar, '%s: bare %s, inside %s' % (what, bare, jar))


def case_links(place, inside):
    """A program that knows the terminal by its variables writes links (OSC 8)."""
    terminal = place.start(inside, ['--allowedTools', 'Bash'])
    place.answer(terminal)
    prompt(terminal, '[[sh echo https://example.com/a]]')
    terminal.wants(lambda: b'https://example.com/a' in terminal.links, 'no link')


def case_killed(place, inside):
    """Killed, it leaves a terminal that can be used. Bare it does not, and nobody else is there to mend it."""
    if not inside:
        return
    terminal = place.start_answered(inside)
    terminal.settle()
    os.kill(newest_below(terminal.pid), signal.SIGKILL)
    must(terminal.ends() and terminal.code == 137, 'exit code %s' % terminal.code)
    must(terminal.is_cooked(), 'the terminal is raw')
    must(not terminal.left_on(), 'left on: %s' % terminal.left_on())
    terminal.close()


def case_closed(place, inside):
    """The window is closed: the program ends, and nothing of it is left."""
    terminal = place.start_answered(inside)
    terminal.settle()
    os.close(terminal.fd)
    terminal.fd = -1
    until = time.monotonic() + PATIENCE
    while os.waitpid(terminal.pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.kill(terminal.pid, signal.SIGKILL)
            os.waitpid(terminal.pid, 0)
            raise Failed('runs on without a terminal')
        select.select([], [], [], 0.1)


def newest_below(pid):
    """The command: the first process of the sandbox's init."""
    below = {}
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open('/proc/%s/stat' % entry) as stat:
                    fields = stat.read().rsplit(')', 1)[1].split()
                below.setdefault(int(fields[1]), []).append(int(entry))
            except OSError:
                pass
    while below.get(pid):
        inits = sorted(below[pid])
        name = open('/proc/%d/comm' % pid).read().strip()
        if name == 'init':
            return inits[0]
        pid = inits[0]
    return pid


def case_config(place, inside):
    """Codex's configuration is written by rename, by `mcp add` as by the interface."""
    if place.agent.name != 'codex':
        return
    done = subprocess.run(place.words(inside, ['mcp', 'add', 'x', '--', 'true']), cwd=place.work, env=place.environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    must(done.returncode == 0 and 'Added global MCP server' in done.stdout, done.stdout)
    with open(place.home + '/.codex/config.toml') as config:
        must(('mcp_servers' in config.read()) != inside, 'config.toml of the host')


def case_daemon(place, inside):
    """The host's background server of Codex is not called, and its sockets stay."""
    if place.agent.name != 'codex' or not inside:
        return
    paths = [place.home + '/.codex/app-server-control/app-server-control.sock', '/tmp/codex-daemon-%d/%s' % (os.getuid(), 'f' * 64)]
    servers = []
    for path in paths:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.path.relpath(path, os.getcwd()) if len(path) > 100 else path)
        server.listen()
        servers.append(server)
    before = [os.stat(path).st_ino for path in paths]
    try:
        terminal = place.start_answered(inside)
        prompt(terminal, 'hello there')
        terminal.wants(place.agent.hello)
        quit_agent(terminal, place.agent)
        terminal.close()
        must(not select.select(servers, [], [], 0)[0], 'the host\'s server was called')
        must([os.stat(path).st_ino for path in paths] == before, 'a socket of the host is another one')
        # By hand, too.
        tried = ("import socket,sys\nfor p in sys.argv[1:]:\n try:\n  socket.socket(socket.AF_UNIX).connect(p); print('reached', p)\n"
                 " except OSError as e: print(e)")
        words = place.suite.run + ['--policy', 'agent-codex', '--', '/usr/bin/python3', '-c', tried] + paths
        done = subprocess.run(words, cwd=place.work, env=place.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, timeout=PATIENCE)
        must('reached' not in done.stdout and done.stdout.count('\n') == 2, done.stdout)
    finally:
        for server, path in zip(servers, paths):
            server.close()
            os.unlink(path)
        try:
            os.rmdir(os.path.dirname(paths[1]))
        except OSError:
            pass


CASES = {name[5:]: case for name, case in list(globals().items()) if name.startswith('case_')}


# --- all of them

class Suite:
    pass


def applies(agent, case):
    if agent.name == 'claude-key':
        return case == 'first'
    if case in ('closed', 'suspend') and agent.name == 'gemini':  # bare, it may run on, and does not stop at this ^Z
        return False
    if case == 'links':  # the others write none
        return agent.name == 'claude'
    return case not in ('config', 'daemon') or agent.name == 'codex'


def chosen(only, agent, case):
    return not only or any(one in (agent, case, agent + ':' + case) for one in only)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('belljar')
    options.add_argument('agents')
    options.add_argument('--model', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'model.py'))
    options.add_argument('--only', nargs='+', default=[])
    options.add_argument('--inside', action='store_true', help='not bare as well')
    options.add_argument('--keep', action='store_true', help='the homes')
    given = options.parse_args()
    suite = Suite()
    suite.bin = os.path.join(os.path.abspath(given.agents), 'node_modules/.bin')
    suite.run = [os.path.abspath(given.belljar), 'run'] + (['--allow-root-uid'] if os.getuid() == 0 else [])
    logs = tempfile.mkdtemp(prefix='belljar-screen-', dir='/var/tmp')
    suite.log = logs + '/log'
    open(suite.log, 'w').close()
    model = subprocess.Popen([sys.executable, '-B', given.model, '--log', suite.log], stdout=subprocess.PIPE, text=True)
    suite.port = int(model.stdout.readline())
    failed = 0
    try:
        for agent in AGENTS:
            for name, case in CASES.items():
                if not applies(agent, name) or not chosen(given.only, agent.name, name):
                    continue
                for inside in (True,) if given.inside or name in ('looks', 'killed', 'daemon') else (False, True):
                    place = Place(suite, agent)
                    label = '%s %s %s' % (agent.name, name, 'inside' if inside else 'bare')
                    try:
                        case(place, inside)
                        print('ok ' + label, flush=True)
                    except (Failed, subprocess.SubprocessError, OSError) as why:
                        failed += 1
                        print('not ok %s: %s' % (label, why), flush=True)
                    finally:
                        place.close()
                        if not given.keep:
                            place.remove()
    finally:
        model.terminate()
        model.wait()
        shutil.rmtree(logs, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
