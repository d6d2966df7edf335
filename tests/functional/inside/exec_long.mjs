// A command that is silent for long, and one that talks, by sdk/typescript. argv: SOCKET SANDBOX QUIET CHAT. Prints
// [exit code, output] of each as JSON. Copied beside the built package.
import { Durward } from "./dist/index.js";

const [socket, id, quiet, chat] = process.argv.slice(2);
const box = await new Durward(socket).get(id);

async function talk() {
  let text = "", last;
  for await (const e of box.stream(chat)) {
    last = e;
    if (e.data) text += Buffer.from(e.data).toString();
  }
  return [last.exitCode ?? last.result?.exitCode, text];
}

const [r, talked] = await Promise.all([box.exec(quiet), talk()]);
console.log(JSON.stringify({ quiet: [r.exitCode, r.text], chat: talked }));
