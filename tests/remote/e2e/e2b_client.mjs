// The official SDK against a server that speaks E2B: what it expects of one, as far as Belljar's client relies on it too. Ends with 0
// when everything was as it should be.
import assert from 'node:assert/strict'
import { CommandExitError, NotFoundError, Sandbox, TimeoutError } from 'e2b'

const sandbox = await Sandbox.create({ metadata: { made: 'by a test' }, envs: { WORD: 'from create' }, timeoutMs: 120_000 })
assert.equal((await sandbox.getInfo()).metadata.made, 'by a test')
assert.equal(await sandbox.isRunning(), true)

const done = await sandbox.commands.run('echo "$WORD"; echo err >&2; pwd')
assert.equal(done.stdout.split('\n')[0], 'from create')
assert.equal(done.stderr, 'err\n')
await assert.rejects(sandbox.commands.run('exit 3'), (error) => error instanceof CommandExitError && error.exitCode === 3)
await assert.rejects(sandbox.commands.run('sleep 60', { timeoutMs: 500 }), TimeoutError)
await assert.rejects(sandbox.commands.run('true', { cwd: '/no/such' }))

let seen = ''
const handle = await sandbox.commands.run('cat', { background: true, stdin: true, onStdout: (text) => (seen += text) })
assert.ok((await sandbox.commands.list()).some((process) => process.pid === handle.pid))
await sandbox.commands.sendStdin(handle.pid, 'through stdin')
await sandbox.commands.closeStdin(handle.pid)
assert.equal((await handle.wait()).stdout, 'through stdin')
assert.equal(seen, 'through stdin')
const sleeper = await sandbox.commands.run('exec sleep 60', { background: true })
assert.equal(await sleeper.kill(), true)
await assert.rejects(sleeper.wait(), CommandExitError)
assert.equal(await sandbox.commands.kill(999999999), false)

const written = await sandbox.files.write('dir/a file.txt', 'content ü')
assert.ok(written.path.endsWith('/dir/a file.txt'))
assert.equal(await sandbox.files.read('dir/a file.txt'), 'content ü')
assert.equal(await sandbox.files.makeDir('dir'), false)
assert.equal(await sandbox.files.makeDir('other/deep'), true)
await sandbox.files.rename('dir/a file.txt', 'other/b.txt')
assert.deepEqual((await sandbox.files.list('other', { depth: 2 })).map((entry) => [entry.name, entry.type]), [
  ['b.txt', 'file'],
  ['deep', 'dir'],
])
assert.equal((await sandbox.files.getInfo('other/b.txt')).size, 10)
assert.equal(await sandbox.files.exists('dir/a file.txt'), false)
await assert.rejects(sandbox.files.read('missing'), NotFoundError)
await sandbox.files.remove('other')
const url = await sandbox.downloadUrl('dir')
assert.equal((await fetch(url)).status, 400, 'a signed URL finds its sandbox, and a directory is no file')

let screen = ''
const terminal = await sandbox.pty.create({ cols: 90, rows: 33, onData: (bytes) => (screen += Buffer.from(bytes)) })
await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 44 })
await sandbox.pty.sendInput(terminal.pid, Buffer.from('stty size; exit\n'))
await terminal.wait()
assert.match(screen, /44 100/)

await sandbox.setTimeout(60_000)
assert.equal(await sandbox.pause(), true)
assert.equal(await sandbox.pause(), false)
assert.equal(await sandbox.isRunning(), false)
const again = await Sandbox.connect(sandbox.sandboxId)
assert.equal((await again.commands.run('echo again')).stdout, 'again\n')
const found = await Sandbox.list({ query: { metadata: { made: 'by a test' } } }).nextItems()
assert.deepEqual(found.map((info) => info.sandboxId), [sandbox.sandboxId])
assert.equal(await again.kill(), true)
assert.equal(await again.kill(), false)
console.log('the SDK is content')
