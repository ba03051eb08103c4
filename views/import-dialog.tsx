/** Importing a file, and what came of it line by line. */
import { Cancel, Dialog, Submit } from "./actions.tsx";
import { type Errors, FormErrors, InputField, SelectField } from "./fields.tsx";
import { count, cut, num } from "./format.ts";
import { Icon } from "./icons.tsx";
import { HOME } from "./memory-dialogs.tsx";
import { type Owner, ownerOptions } from "./owners.ts";

export const ImportDialog = ({
  errors,
  owners,
  owner,
}: {
  errors: Errors;
  owners: readonly Owner[];
  owner: string;
}) => {
  const field = { form: "import", errors };
  return (
    <Dialog
      id="import"
      title="Import memories"
      close={HOME}
      form={{ action: "/dashboard/memory/import", multipart: true }}
      foot={
        <>
          <Cancel to={HOME} />
          <Submit>
            <Icon name="upload" />
            Import
          </Submit>
        </>
      }
    >
      <p class="prose">
        JSONL as exported here, a page of this list as JSON, or a file of another program. Importing the same
        file twice changes nothing.
      </p>
      <FormErrors
        form="import"
        errors={errors}
        labels={{ file: "File", from: "Format", apiKeyId: "Owner" }}
      />
      <InputField
        {...field}
        name="file"
        label="File"
        kind="file"
        more={{ type: "file", accept: ".jsonl,.ndjson,.json,.txt", required: true, autofocus: true }}
      />
      <div class="fields">
        <SelectField
          {...field}
          name="from"
          label="Format"
          value="recollect"
          options={[
            { value: "recollect", text: "Recollect" },
            { value: "mem0", text: "mem0" },
            { value: "chatgpt", text: "ChatGPT export" },
            { value: "claude", text: "Claude export" },
            { value: "omniroute", text: "OmniRoute JSON" },
          ]}
        />
        <SelectField
          {...field}
          name="apiKeyId"
          label="Owner"
          value={owner}
          options={ownerOptions(owners, owner)}
        />
      </div>
    </Dialog>
  );
};

export interface ImportReport {
  file: string;
  created: number;
  updated: number;
  unchanged: number;
  refused: { line: number; message: string }[];
}

export const ImportReportView = ({ report }: { report: ImportReport }) => {
  const taken = report.created + report.updated + report.unchanged;
  return (
    <div class="report" role="status">
      <p>
        <b>
          Imported {num(taken)} of {count(taken + report.refused.length, "line")}
        </b>{" "}
        from {cut(report.file, 60)}. {num(report.created)} new, {num(report.updated)} changed,{" "}
        {num(report.unchanged)} already here.
      </p>
      {report.refused.length > 0 ? (
        <div class="table-wrap scroll-list" tabindex={0} role="region" aria-label="Lines that were refused">
          <table class="table">
            <thead>
              <tr>
                <th class="num">Line</th>
                <th>Why it was refused</th>
              </tr>
            </thead>
            <tbody>
              {report.refused.slice(0, 200).map((refused) => (
                <tr>
                  <td class="num">{num(refused.line)}</td>
                  <td>{refused.message}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </div>
  );
};

export const ImportDone = ({ report }: { report: ImportReport }) => (
  <Dialog
    id="import"
    title="Import"
    close={HOME}
    foot={
      <a class="btn btn-primary" href={HOME} autofocus>
        Show the memories
      </a>
    }
  >
    <ImportReportView report={report} />
  </Dialog>
);
