/** The MCP server of one caller: lists the tools it may use and runs them. */
import {
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type CallToolResult,
  type Tool,
} from "@modelcontextprotocol/server";
import type { Engine } from "../engine.ts";
import { AppError, toAppError } from "../error.ts";
import type { Log } from "../log.ts";
import { objectSchema } from "../schemas/json-schema.ts";
import { check } from "../validate.ts";
import { allows, tools, type AnyTool, type McpCaller } from "./tools.ts";

const instructions =
  "A long-term memory of the person you talk with. Search it before answering what depends on the past; add durable " +
  "statements (preferences, decisions, facts, instructions), never secrets; correct or delete what is no longer true.";

export type McpDeps = { engine: Engine; version: string; log: Log };

/** `who` is asked at each request; what it throws is the answer. */
export function createMcpServer({ engine, version, log }: McpDeps, who: () => McpCaller): Server {
  const server = new Server(
    { name: "recollect", title: "Recollect", version },
    { capabilities: { tools: {} }, instructions, jsonSchemaValidator: noElicitation },
  );
  server.setRequestHandler("tools/list", () => {
    const caller = who();
    return { tools: tools.filter((tool) => allows(caller, tool)).map(listed) };
  });
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }): Promise<CallToolResult> => {
    const tool = tools.find(({ name }) => name === params.name);
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${params.name}.`);
    const token = params._meta?.progressToken;
    try {
      const caller = who();
      if (!allows(caller, tool)) {
        throw new AppError(
          "insufficient_scope",
          `This API key lacks the scope ${tool.scope}. Use a key that has it.`,
        );
      }
      const input = check(tool.input, params.arguments ?? {});
      const result = await tool.run(input, {
        engine,
        caller,
        signal: mcpReq.signal,
        progress: async (progress, total) => {
          if (token === undefined) return;
          await mcpReq.notify({
            method: "notifications/progress",
            params: { progressToken: token, progress, total },
          });
        },
      });
      return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result };
    } catch (thrown) {
      return toolError(tool, thrown, log);
    }
  });
  return server;
}

/** A sentence that the model can act on: every wrong field, or what to do. */
function toolError(tool: AnyTool, thrown: unknown, log: Log): CallToolResult {
  const error = toAppError(thrown);
  if (error.code === "internal") log.error("mcp.tool.failed", { tool: tool.name, error: error.cause });
  const fields = error.details.map(({ field, message }) => `${field}: ${message}`).join("; ");
  return { content: [{ type: "text", text: fields || error.message }], isError: true };
}

function listed(tool: AnyTool): Tool {
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: objectSchema(tool.input) as Tool["inputSchema"],
    outputSchema: objectSchema(tool.output, "output") as Tool["inputSchema"],
    annotations: { title: tool.title, openWorldHint: false, ...tool.hints },
  };
}

/** The SDK builds a schema compiler for answers to elicitation, which we never ask for. */
const noElicitation = {
  getValidator: () => () => ({ valid: false as const, data: undefined, errorMessage: "not supported" }),
};
