# The tools of `belljar mcp --txn`: mcp_layers.py BELLJAR WORKSPACE. Prints "ok" at the end.
import glob
import json
import os
import subprocess
import sys

from mcp_peer import Peer

belljar, workspace = sys.argv[1:3]
SERVER = [belljar, 'mcp', '--workspace', workspace, '--permission', 'yolo']


def paths(peer, **arguments):
    listed = peer.call('sandbox_diff', **arguments)['structuredContent']
    assert listed['count'] == len(listed['changes']), listed
    return sorted(row['change'] + ' ' + row['path'] for row in listed['changes'])


def said(peer, text, **arguments):
    result = peer.call('bash', command=text, **arguments)
    assert not result['isError'], result
    return result['content'][0]['text']


def refused(peer, name, part, /, **arguments):
    result = peer.call(name, **arguments)
    assert result['isError'] and part in result['content'][0]['text'], result


def names_kept():
    found = glob.glob(os.path.join(os.environ['XDG_STATE_HOME'], 'belljar/txn/*/txns/*'))
    return [os.path.basename(path) for path in found]


def kinds():
    return ['-'.join(name.split('-')[:2]) for name in names_kept()]


with Peer(SERVER) as peer:
    names = [tool['name'] for tool in peer.request('tools/list', {})['tools']]
    assert 'sandbox_create' in names and 'sandbox_snapshot' not in names, names

with Peer(SERVER + ['--txn']) as peer:
    tools = {tool['name']: tool for tool in peer.request('tools/list', {})['tools']}
    assert tools['sandbox_rollback']['annotations']['destructiveHint'] and tools['sandbox_diff']['annotations']['readOnlyHint']
    said(peer, 'echo one > a; mkdir d')
    assert paths(peer) == ['added a', 'added d'], paths(peer)
    assert not os.listdir(workspace)
    assert not peer.call('sandbox_snapshot', name='first')['isError']
    said(peer, r"echo two > a; touch $'b\x1b[31m'")
    assert paths(peer) == ['added a', 'added b\\x1b[31m', 'added d'], paths(peer)
    refused(peer, 'sandbox_snapshot', 'has one of that name', name='first')
    refused(peer, 'sandbox_snapshot', 'does not fit', name=1)
    refused(peer, 'sandbox_rollback', 'cannot find the snapshot', snapshot='second')
    refused(peer, 'sandbox_rollback', 'there is no argument', to='first')
    refused(peer, 'sandbox_rollback', 'cannot find the snapshot', snapshot='')
    refused(peer, 'sandbox_diff', 'there is no sandbox', sandbox='s9')
    said(peer, 'sleep 100', background=True)
    said(peer, 'until pgrep -x sleep; do :; done')
    refused(peer, 'sandbox_rollback', 'sleep', snapshot='first')
    said(peer, 'pkill sleep; while pgrep -x sleep; do :; done')
    assert not peer.call('sandbox_rollback', snapshot='first')['isError']
    assert 'one' in said(peer, 'cat a; ls')
    # A further sandbox has a transaction of its own; one that only reads has none.
    other = peer.call('sandbox_create')['structuredContent']['sandbox']
    said(peer, 'touch other', sandbox=other)
    assert paths(peer, sandbox=other) == ['added other'] and paths(peer) == ['added a', 'added d']
    reader = peer.call('sandbox_create', read_only=True)['structuredContent']['sandbox']
    refused(peer, 'sandbox_diff', 'made with read_only', sandbox=reader)
    refused(peer, 'sandbox_snapshot', 'use a sandbox that was made without read_only', sandbox=reader, name='x')
    # Ended with nothing done: nobody misses its transaction. Of the one with work in it, its writer is not the judge.
    idle = peer.call('sandbox_create')['structuredContent']['sandbox']
    assert sorted(kinds()) == ['default', 'default-s1', 'default-s3'], kinds()
    assert not peer.call('sandbox_kill', sandbox=idle)['isError']
    assert not peer.call('sandbox_kill', sandbox=other)['isError']
    assert sorted(kinds()) == ['default', 'default-s1'], kinds()
    peer.call('sandbox_create')
assert sorted(kinds()) == ['default', 'default-s1'], kinds()

# A further server's first sandbox begins as the directory is, not as an earlier one left its own.
with Peer(SERVER + ['--txn']) as peer:
    fresh = peer.call('sandbox_create')['structuredContent']['sandbox']
    assert fresh == other and paths(peer, sandbox=fresh) == [], paths(peer, sandbox=fresh)
kept = next(name for name in names_kept() if name != 'default')
listed = subprocess.run([belljar, 'diff', '--workspace', workspace, '--txn-name', kept], capture_output=True, check=True).stdout
assert listed == b'A other\n', listed
subprocess.run([belljar, 'rollback', '--workspace', workspace, '--txn-name', kept], check=True, stderr=subprocess.DEVNULL)

# A server that is killed ends nothing: what is empty goes at the next start or with `recover`, what holds work is kept and told.
def killed_server():
    peer = Peer(SERVER + ['--txn'])
    work = peer.call('sandbox_create')['structuredContent']['sandbox']
    said(peer, 'touch unfinished', sandbox=work)
    peer.call('sandbox_create')
    peer.process.kill()
    peer.process.wait(60)
    assert sorted(kinds()) == ['default', 'default-s1', 'default-s2'], kinds()
    return next(name for name in names_kept() if name.startswith('default-s1'))


def drop(name):
    subprocess.run([belljar, 'rollback', '--workspace', workspace, '--txn-name', name], check=True, stderr=subprocess.DEVNULL)


def recover():
    return subprocess.run([belljar, 'recover', '--workspace', workspace], capture_output=True, check=True).stderr.decode()


kept = killed_server()
with Peer(SERVER + ['--txn']) as peer:
    said(peer, 'true')
    assert sorted(kinds()) == ['default', 'default-s1'], kinds()
    assert any(f'the transaction {kept} is kept' in str(line) for line in peer.logged), peer.logged
    # What a server that lives has made is nobody's to drop, empty or not.
    peer.call('sandbox_create')
    assert 'dropped' not in recover() and len(kinds()) == 3, kinds()
drop(kept)
kept = killed_server()
told = recover()
assert f'the transaction {kept} is kept' in told and 'default-s2' in told and 'is dropped' in told, told
assert sorted(kinds()) == ['default', 'default-s1'], kinds()
drop(kept)
# What was rolled back to nothing and has a snapshot holds that, however its server ended.
for ending in ('kill', 'close'):
    with Peer(SERVER + ['--txn']) as peer:
        work = peer.call('sandbox_create')['structuredContent']['sandbox']
        said(peer, 'echo work >precious', sandbox=work)
        assert not peer.call('sandbox_snapshot', name='good', sandbox=work)['isError']
        said(peer, 'rm precious', sandbox=work)
        if ending == 'kill':
            peer.process.kill()
            peer.process.wait(60)
    recover()
    kept = next(name for name in names_kept() if name.startswith('default-s1'))
    subprocess.run([belljar, 'rollback', '--workspace', workspace, '--txn-name', kept, '--to', 'good'], check=True)
    assert 'precious' in subprocess.run([belljar, 'diff', '--workspace', workspace, '--txn-name', kept], capture_output=True).stdout.decode()
    drop(kept)
# One that somebody named is theirs, empty or not.
subprocess.run([belljar, 'run', '--workspace', workspace, '--txn-name', 'mine', '--', 'true'], check=True)
recover()
assert sorted(names_kept()) == ['default', 'mine'], names_kept()
drop('mine')

# Another server's model cannot drop that: it returns to where its own sandbox began, and not unjudged.
with Peer([belljar, 'mcp', '--workspace', workspace, '--permission', 'plan', '--txn']) as peer:
    refused(peer, 'sandbox_rollback', 'plan')
    refused(peer, 'sandbox_snapshot', 'plan', name='x')
with Peer(SERVER + ['--txn']) as peer:
    said(peer, 'touch mine')
    refused(peer, 'sandbox_rollback', 'cannot find the snapshot', snapshot='first')
    assert not peer.call('sandbox_rollback', snapshot=None)['isError']
    assert paths(peer) == ['added a', 'added d'], paths(peer)

# What the agent did is in a transaction as any other.
listed = subprocess.run([belljar, 'diff', '--json', '--workspace', workspace], capture_output=True, check=True).stdout
assert sorted(json.loads(line)['path'] for line in listed.splitlines()) == ['a', 'd'], listed
subprocess.run([belljar, 'commit', '--all', '--workspace', workspace], check=True, stdout=subprocess.DEVNULL)
assert sorted(os.listdir(workspace)) == ['a', 'd'], os.listdir(workspace)
print('ok')
