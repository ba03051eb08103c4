/** `recollect service install`: a hardened systemd unit, for the whole machine (root) or for one user. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { exit, UsageError } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect service install [--user] [--print] [--data-dir DIR] [--host HOST] [--port PORT]",
    "",
    "  as root: a unit for the whole machine, with a user and a folder (/var/lib/recollect) of its own",
    "  --user   a unit of the user that calls; what happens without root",
    "  --print  show the unit, install nothing",
  ],
  options: {
    user: { type: "boolean" },
    print: { type: "boolean" },
    host: { type: "string" },
    port: { type: "string" },
  },
  async run(call) {
    const [action, ...rest] = call.args;
    if (action !== "install" || rest.length > 0) throw new UsageError("This takes: install.");
    const root = userInfo().uid === 0;
    const user = call.flags["user"] === true || !root;
    const command = call.world.self;
    const problem =
      command.length > 1
        ? "This runs from source; build the executable first: bun run build"
        : hidden(command[0]!, user);
    if (problem !== null && call.flags["print"] !== true) throw new UsageError(problem);
    call.config();
    const unit = unitText({ command, user, environment: environmentOf(call) });
    if (call.flags["print"] === true) {
      call.world.stdout.write(unit);
      return exit.ok;
    }
    if (Bun.which("systemctl") === null) {
      call.world.stderr.write(
        "recollect: There is no systemd here. Start it from your own init with: recollect serve\n",
      );
      return exit.failed;
    }
    const path = user
      ? join(
          call.world.env["XDG_CONFIG_HOME"] ?? join(homedir(), ".config"),
          "systemd/user/recollect.service",
        )
      : "/etc/systemd/system/recollect.service";
    const replaced = existsSync(path);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, unit);
    chmodSync(path, 0o644);
    const systemctl = user ? "systemctl --user" : "systemctl";
    call.print(`${replaced ? "Replaced" : "Wrote"} ${path}. Start it now and at every boot with:`);
    call.print(`  ${systemctl} daemon-reload && ${systemctl} enable --now recollect`);
    call.print("The first sign-in link, API key and management token are then in its log:");
    call.print(`  ${user ? "journalctl --user" : "journalctl"} -u recollect`);
    if (user) call.print("So that it runs while nobody is logged in: loginctl enable-linger");
    return exit.ok;
  },
};

/** What this call was given and the service must have too. Secrets do not belong in a unit that everybody can read. */
function environmentOf(call: Call): Record<string, string> {
  const { DATA_DIR, HOST, PORT } = call.inputs.flags;
  return {
    ...(DATA_DIR === undefined ? {} : { DATA_DIR }),
    ...(HOST === undefined ? {} : { HOST }),
    ...(PORT === undefined ? {} : { PORT }),
  };
}

/** A service of the machine does not see homes and temporary folders. */
function hidden(path: string, user: boolean): string | null {
  if (/^\/(tmp|var\/tmp|dev\/shm)\//.test(path) || (!user && /^\/(home|root|run\/user)\//.test(path))) {
    return `A service does not see ${path}. Put the executable in place first: install -m 755 ${path} /usr/local/bin/recollect, then /usr/local/bin/recollect service install`;
  }
  return null;
}

export interface UnitOptions {
  readonly command: readonly string[];
  readonly user: boolean;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * The unit. What it may not do is everything but: listen, reach providers, write its own folder, and make machine code
 * (the JavaScript engine compiles, hence no MemoryDenyWriteExecute).
 */
export function unitText({ command, user, environment }: UnitOptions): string {
  const dataDir = environment["DATA_DIR"];
  const own = user
    ? []
    : dataDir === undefined
      ? ["StateDirectory=recollect", "StateDirectoryMode=0700"]
      : [`ReadWritePaths=${quote(dataDir)}`];
  const variables = {
    ...(user || dataDir !== undefined ? {} : { DATA_DIR: "/var/lib/recollect" }),
    ...environment,
  };
  const system = [
    "DynamicUser=yes",
    "ProtectHome=yes",
    "ProtectSystem=strict",
    "PrivateDevices=yes",
    "PrivateUsers=yes",
    "ProtectClock=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectProc=invisible",
    "ProcSubset=pid",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "DeviceAllow=",
    "RemoveIPC=yes",
  ];
  const everywhere = [
    "NoNewPrivileges=yes",
    "PrivateTmp=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelTunables=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "KeyringMode=private",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged @resources",
    "SystemCallErrorNumber=EPERM",
    "UMask=0077",
  ];
  return `[Unit]
Description=Recollect, a long-term memory for OpenAI-compatible applications
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=all
ExecStart=${command.map((word) => quote(word).replaceAll("$", "$$$$")).join(" ")} serve
${Object.entries(variables)
  .map(([name, value]) => `Environment=${quote(`${name}=${value}`)}\n`)
  .join("")}EnvironmentFile=-${user ? "%h/.config/recollect/environment" : "/etc/recollect/environment"}
${own.map((line) => `${line}\n`).join("")}Restart=on-failure
RestartSec=1
RestartPreventExitStatus=2 78
TimeoutStartSec=120
TimeoutStopSec=15
LimitNOFILE=65536
${[...(user ? [] : system), ...everywhere].join("\n")}

[Install]
WantedBy=${user ? "default.target" : "multi-user.target"}
`;
}

/** A word of a unit file: systemd reads backslashes, quotes and `%`. */
function quote(word: string): string {
  const escaped = word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%");
  return /^[\w@%+=:,./-]+$/.test(escaped) ? escaped : `"${escaped}"`;
}
