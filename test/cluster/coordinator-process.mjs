// A process of its own for the coordinator tests: `serve DIRECTORY SOCKET TIMEOUT_MS` or `lead SOCKET TIMEOUT_MS`, with
// the build named in ISOBAR_BUILD. Prints one JSON line when it is ready, or the error that kept it from starting.
const build = process.env.ISOBAR_BUILD;
const { connectCoordination, openEmbeddedCoordinator } = await import(`${build}/coordination/index.js`);
const { processIdentity, silentLogger, systemClock } = await import(`${build}/base/index.js`);
const [mode, ...rest] = process.argv.slice(2);
const common = { clock: systemClock, logger: silentLogger };
try {
  if (mode === 'serve') {
    const [directory, socketPath, timeoutMs] = rest;
    // A small log, so that kills hit compactions as well.
    await openEmbeddedCoordinator({
      ...common,
      directory,
      socketPath,
      sessionTimeoutMs: Number(timeoutMs),
      compactionBytes: 64 * 1024,
    });
    console.log(JSON.stringify({ ready: true }));
  } else {
    const [socketPath, timeoutMs] = rest;
    const coordination = await connectCoordination({
      ...common,
      address: socketPath,
      process: processIdentity(process.pid),
      settings: { 'coordinator.session-timeout': Number(timeoutMs) },
    });
    console.log(JSON.stringify({ ready: true, leads: await coordination.tryLead(`pid-${process.pid}`) }));
  }
} catch (error) {
  console.log(JSON.stringify({ ready: false, code: error.code, message: error.message }));
  process.exit(1);
}
