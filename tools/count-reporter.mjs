// A vitest reporter whose only word is the last one: how many tests passed, failed and were skipped.
export default class CountReporter {
  onTestRunEnd(testModules, unhandledErrors) {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    for (const testModule of testModules) {
      let tests = 0;
      for (const test of testModule.children.allTests()) {
        tests++;
        const { state } = test.result();
        counts[state === 'passed' || state === 'failed' ? state : 'skipped']++;
      }
      // A file that could not even be loaded has no tests to count.
      if (tests === 0 || testModule.errors().length > 0) counts.failed++;
    }
    counts.failed += unhandledErrors.length;
    process.on('exit', () => {
      process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
    });
  }
}
