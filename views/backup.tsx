/** Backup, restore, and memories as JSONL. */
import { DialogLink } from "./actions.tsx";
import { type Errors, FieldError } from "./fields.tsx";
import { Ledger } from "./figures.tsx";
import { bytes, dayTime } from "./format.ts";
import { Icon } from "./icons.tsx";
import type { Chrome } from "./layout.tsx";
import { Section } from "./parts.tsx";
import { SettingsPage } from "./settings.tsx";

export interface BackupProps {
  chrome: Chrome;
  counts: { keys: number; providers: number };
  databaseBytes: number | null;
  lastBackup: string | null;
  freeBytes: number | null;
  dataDir: string;
  errors: Errors;
}

export const BackupPage = ({ chrome, counts, errors, ...facts }: BackupProps) => (
  <SettingsPage chrome={chrome} tab="backup" title="Backup" counts={counts}>
    <Section
      id="b-make"
      title="Backup"
      sub="One file with everything: memories, exchanges, keys, settings. Requests go on while it is made."
    >
      <div class="panel panel-pad stack">
        <Ledger
          rows={[
            ["Folder", <code>{facts.dataDir}</code>],
            facts.databaseBytes === null ? null : ["Database", bytes(facts.databaseBytes)],
            ["Last backup here", facts.lastBackup ? dayTime(facts.lastBackup) : "none yet"],
            facts.freeBytes === null ? null : ["Free on this disk", bytes(facts.freeBytes)],
          ]}
        />
        <form class="form-foot" method="post" action="/dashboard/settings/backup/download">
          <button class="btn btn-primary">
            <Icon name="download" />
            Download a backup
          </button>
          <p class="note">Keep it safe: it holds everything that was said.</p>
        </form>
      </div>
    </Section>
    <Section
      id="b-restore"
      title="Restore"
      sub="Replaces everything on this box with a backup. What is here now is saved first."
    >
      <form
        class="panel panel-pad stack"
        method="post"
        enctype="multipart/form-data"
        action="/dashboard/settings/backup/restore"
        aria-label="Restore"
      >
        <div class="field">
          <label for="restore-file">Backup file</label>
          <input
            class="input input-file"
            id="restore-file"
            type="file"
            name="file"
            required
            {...(errors["file"]
              ? { "aria-invalid": "true", "aria-describedby": "restore-file-e", autofocus: true }
              : {})}
          />
          <p class="hint">It is checked before anything is replaced. Requests wait for a moment.</p>
          <FieldError form="restore" name="file" errors={errors} />
        </div>
        <label class="inline">
          <input type="checkbox" name="sure" value="true" required /> Replace everything that is on this box
          now
        </label>
        <FieldError form="restore" name="sure" errors={errors} />
        <div class="form-foot">
          <button class="btn btn-danger-quiet">Check and restore</button>
        </div>
      </form>
    </Section>
    <Section
      id="b-move"
      title="Move memories"
      sub="As JSONL, one memory a line, with history. Importing twice changes nothing."
    >
      <div class="panel panel-pad stack">
        <div class="form-foot">
          <a class="btn" href="/dashboard/memory/export" download>
            <Icon name="download" />
            Export
          </a>
          <DialogLink class="btn" to="/dashboard/memory/import">
            <Icon name="upload" />
            Import…
          </DialogLink>
        </div>
      </div>
    </Section>
  </SettingsPage>
);
