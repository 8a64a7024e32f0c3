// An HTTP/2 server for tests: `node h2_server.mjs HOST PORT CERTIFICATE-AND-KEY.pem`. It says "ready" when it listens; each request is
// told on a line of its standard output. By path: /a/aborted tells how many were cut by the client; /echo gives the body back as it comes, with the request's trailers; /hello five
// bytes with trailers; /head trailers without a body; /big?N so many bytes; /hold nothing at all; /reset a stream that is cut.
// Anything else tells what was asked.
import http2 from 'node:http2';
import fs from 'node:fs';

const [host, port, pem] = process.argv.slice(2);
const server = http2.createSecureServer({ key: fs.readFileSync(pem), cert: fs.readFileSync(pem) });

let aborted = 0;
server.on('stream', (stream, headers) => {
  const path = headers[':path'];
  console.log(`${headers[':method']} ${path} te=${headers.te} key=${headers['x-key']}`);
  stream.on('error', () => {});
  stream.on('aborted', () => (++aborted, console.log(`aborted ${path}`)));
  if (path === '/a/aborted') return stream.respond({ ':status': 200 }), stream.end(`${aborted}`);
  if (path === '/hold') return;
  if (path === '/head') return stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true });
  if (path === '/reset') return stream.respond({ ':status': 200 }), stream.write('half', () => setTimeout(() => stream.destroy(new Error('cut')), 50));
  const trailers = path === '/echo' || path === '/hello';
  if (trailers) stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': 'after', 'x-key': headers['x-key'] ?? '', ...said }));
  const said = {};
  stream.on('trailers', (fields) => Object.assign(said, { 'x-said': fields['x-said'] ?? '' }));
  if (path === '/echo') {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    return stream.pipe(stream);
  }
  if (path === '/hello') return stream.respond({ ':status': 200 }, { waitForTrailers: true }), stream.end('hello');
  if (path.startsWith('/big?')) return stream.respond({ ':status': 200 }), stream.end(Buffer.alloc(Number(path.slice(5)), 'x'));
  if (path === '/gzip') return stream.respond({ ':status': 200, 'grpc-encoding': 'gzip' }), stream.end('?');
  stream.resume();
  let size = 0;
  stream.on('data', (data) => (size += data.length));
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'x-key': headers['x-key'] ?? '' });
    stream.end(`${headers[':method']} ${path} HTTP/${stream.session.socket.alpnProtocol} key=${headers['x-key'] ?? ''} body=${size}\n`);
  });
});
server.listen(Number(port), host, () => console.log('ready'));
