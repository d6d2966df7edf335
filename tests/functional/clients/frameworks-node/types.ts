// What our modules give is what OpenAI's SDK, Vercel's and Mastra take.
import { applyDiff, applyPatchTool, shellTool, type Editor, type Shell } from "@openai/agents";
import { Durward } from "durward";
import { editor, shell } from "durward/openai-agents";
import { Manifest, type SandboxClient, type SandboxSession } from "@openai/agents/sandbox";
import { DurwardSandboxClient } from "durward/openai-sandbox";
import { Workspace, type WorkspaceFilesystem, type WorkspaceSandbox } from "@mastra/core/workspace";
import { DurwardFilesystem, DurwardSandbox } from "durward/mastra";
import type { Experimental_SandboxSession } from "ai";
import { sandboxSession } from "durward/ai-sdk";

const box = await new Durward().create({ policy: "coder" });
const files: Editor = editor(box, applyDiff);
const commands: Shell = shell(box);
export const tools = [shellTool({ shell: commands }), applyPatchTool({ editor: files }), shellTool({ shell: shell(box) })];
const client = new DurwardSandboxClient({ applyDiff, Manifest });
export const sandboxes: SandboxClient<any, any> = client;
export const session: SandboxSession<any> = await client.create();
const sandbox: WorkspaceSandbox = new DurwardSandbox(box);
const filesystem: WorkspaceFilesystem = new DurwardFilesystem(box);
export const workspace = new Workspace({ sandbox, filesystem });
export const vercel: Experimental_SandboxSession = sandboxSession(box);
