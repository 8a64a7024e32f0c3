// An HTTP/2 client for tests, direct or by the proxy of HTTPS_PROXY: `node h2_client.mjs URL STEP...`; each step prints one line.
import http2 from 'node:http2';
import http from 'node:http';
import tls from 'node:tls';

const url = new URL(process.argv[2]);

function tunnel() {
  if (!process.env.HTTPS_PROXY) return Promise.resolve(undefined);
  const proxy = new URL(process.env.HTTPS_PROXY);
  return new Promise((resolve, reject) => {
    const place = `${url.hostname}:${url.port || 443}`;
    const request = http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: place, headers: { host: place } });
    request.on('connect', (answer, socket) => resolve(tls.connect({ socket, servername: url.hostname, ALPNProtocols: ['h2'] })));
    request.on('error', reject).end();
  });
}

const socket = await tunnel();
const session = http2.connect(url.origin, socket ? { createConnection: () => socket } : {});
session.on('error', (error) => console.log(`session ${error.code ?? error.message}`));

function ask(headers, { body, trailers, end = true } = {}) {
  const stream = session.request(headers, { endStream: end && body === undefined && !trailers, waitForTrailers: trailers !== undefined });
  const got = { body: '' };
  if (trailers) stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.on('response', (fields) => (got.status = fields[':status'], got.fields = fields));
  stream.on('trailers', (fields) => (got.trailers = fields));
  stream.setEncoding('utf8').on('data', (data) => (got.body += data));
  if (body !== undefined) stream.end(body);
  else if (trailers) stream.end();
  const done = new Promise((resolve) => {
    stream.on('error', (error) => (got.error = error.code));
    stream.on('close', () => resolve(got));
  });
  return { stream, got, done };
}

const steps = {
  async get() { const { status, body } = await ask({ ':path': '/a/get' }).done; return `${status} ${body.trim()}`; },
  async post() { const { status, body } = await ask({ ':path': '/a/post', ':method': 'POST' }, { body: 'x'.repeat(300000) }).done; return `${status} ${body.trim()}`; },
  async refused() { const { status, fields } = await ask({ ':path': '/b' }).done; return `${status} ${fields['x-belljar-refused']}`; },
  // A word out, its echo back, before the next: nothing waits for the whole of a body.
  async talk() {
    const { stream, got, done } = ask({ ':path': '/echo', ':method': 'POST', 'te': 'trailers', 'x-key': process.env.API_KEY ?? '' }, { end: false, trailers: undefined });
    for (const word of ['one ', 'two ', 'three']) {
      const before = got.body.length;
      stream.write(word);
      while (got.body.length < before + word.length) await new Promise((resolve) => stream.once('data', resolve));
    }
    stream.end();
    await done;
    return `${got.status} ${got.body} ${got.trailers?.['x-end']} ${got.trailers?.['x-key']}`;
  },
  async trailers() {
    const { trailers, body } = await ask({ ':path': '/echo', ':method': 'POST', 'trailer': 'x-said' }, { body: 'b', trailers: { 'x-said': 'last' } }).done;
    return `${body} ${trailers?.['x-said']}`;
  },
  async head() {
    const { stream, got, done } = ask({ ':path': '/head', 'te': 'trailers' });
    let whole = false;
    stream.on('response', (fields, flags) => (whole = (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0));
    await done;
    return `${got.status} grpc-status=${got.fields['grpc-status']} whole=${whole}`;
  },
  // When it has arrived, which nobody says: where 300 ms were not enough, the server did not hear of it, and there are more.
  async cancel() {
    for (let wait = 300; wait < 100000; wait *= 6) {
      const { stream, done } = ask({ ':path': '/hold' });
      setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), wait);
      await done;
      for (let turn = 0; turn < 20; ++turn) {
        if ((await ask({ ':path': '/a/aborted' }).done).body !== '0') return 'cancelled';
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    return 'and the server did not hear of it';
  },
  async reset() { const { body, error } = await ask({ ':path': '/reset' }).done; return `${body} ${error}`; },
  async host() { const { status } = await ask({ ':path': '/a', ':authority': 'other.test' }).done; return `${status}`; },
  async connect() { const { status, error } = await ask({ ':method': 'CONNECT', ':authority': 'web.test:443' }).done; return `${status} ${error}`; },
  async gzip() { const { status, fields } = await ask({ ':path': '/gzip' }).done; return `${status} ${fields['x-belljar-refused']}`; },
  async many() {
    const all = await Promise.all(Array.from({ length: 60 }, () => ask({ ':path': '/a/many' }).done));
    return `${all.filter(({ status }) => status === 200).length} of 60`;
  },
  async big() { const { body } = await ask({ ':path': '/big?3000000' }).done; return `${body.length}`; },
  // One stream that nobody reads holds up no other.
  async stalled() {
    const slow = ask({ ':path': '/big?9000000' });
    slow.stream.pause();
    await new Promise((resolve) => slow.stream.on('response', resolve));
    const { body } = await ask({ ':path': '/a/get' }).done;
    slow.stream.resume();
    await slow.done;
    return `${body.trim()} then ${slow.got.body.length}`;
  },
};
for (const step of process.argv.slice(3)) {
  const late = setTimeout(() => (console.log(`${step}: nothing came`), process.exit(3)), 180000);
  console.log(`${step}: ${await steps[step]()}`);
  clearTimeout(late);
}
session.close();
