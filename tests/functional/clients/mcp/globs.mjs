// The conformance suite wants fs.globSync, which Node has from 22 on, for a command that is not used here.
import { register } from "node:module";
import * as fs from "node:fs";

const names = Object.keys(fs).filter((n) => n !== "default" && n !== "globSync");
const text = `import fs from "node:fs"; export default fs; export const {${names}} = fs;` +
  "export const globSync = fs.globSync ?? (() => { throw new Error('no globSync here'); });";
const shim = "data:text/javascript," + encodeURIComponent(text);
register("data:text/javascript," + encodeURIComponent(`
export async function resolve(name, context, next) {
  return name === "fs" && (context.parentURL ?? "").includes("/conformance/")
    ? { url: ${JSON.stringify(shim)}, shortCircuit: true } : next(name, context);
}`));
