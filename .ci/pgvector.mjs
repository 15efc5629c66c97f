// A PostgreSQL with pgvector, compiled to WebAssembly, on a port of the loopback interface. It has one session for all
// connections, and nothing outlives it. It ends with its standard input.
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

const db = await PGlite.create({ extensions: { vector } });
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: Number(process.argv[2]), maxConnections: 100 });
await server.start();
console.log('ready');
process.stdin.on('end', () => process.exit(0)).resume();
