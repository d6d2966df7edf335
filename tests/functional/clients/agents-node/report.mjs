// One line of JSON for each behaviour: {"what", "ok", "why"}. The test that started us counts them.
const wanted = [];

export function behaviour(what, run) {
  wanted.push([what, run]);
}

export async function runAll() {
  for (const [what, run] of wanted) {
    let why = "";
    try {
      await run();
    } catch (e) {
      why = String(e?.stack ?? e);
    }
    process.stdout.write(JSON.stringify({ what, ok: !why, why }) + "\n");
  }
}
