// Puts what looks from inside a sandbox, a program of the Python package, into dist/probe.js.
import { readFileSync, writeFileSync } from "node:fs";

const text = readFileSync(new URL("../python/src/durward_deepagents/probe.py", import.meta.url), "utf8");
writeFileSync(new URL("dist/probe.js", import.meta.url), `export const PROBE = ${JSON.stringify(text)};\n`);
