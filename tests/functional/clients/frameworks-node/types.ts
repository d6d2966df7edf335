// What durward/openai-agents gives is what OpenAI's SDK takes.
import { applyDiff, applyPatchTool, shellTool, type Editor, type Shell } from "@openai/agents";
import { Durward } from "durward";
import { editor, shell } from "durward/openai-agents";

const box = await new Durward().create({ policy: "coder" });
const files: Editor = editor(box, applyDiff);
const commands: Shell = shell(box);
export const tools = [shellTool({ shell: commands }), applyPatchTool({ editor: files }), shellTool({ shell: shell(box) })];
