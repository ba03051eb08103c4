/** Work that goes on behind the requests, by kind. */
import { Post } from "./actions.tsx";
import { num } from "./format.ts";
import { Icon } from "./icons.tsx";

export interface JobGroup {
  type: string;
  queued: number;
  running: number;
  failed: number;
  oldestSeconds: number | null;
  lastError: string | null;
}

const jobWords: Record<string, string> = {
  extract: "Learn from exchanges",
  embed: "Embed",
  index: "Index",
  qdrant: "Write to Qdrant",
  summarise: "Summarise",
  summarize: "Summarise",
  cleanup: "Clean up",
};

const jobName = (type: string): string => jobWords[type] ?? type.replaceAll(/[-_.:]/g, " ");

export const seconds = (n: number): string =>
  n < 120 ? `${num(n)} s` : n < 7200 ? `${num(n / 60)} min` : `${num(n / 3600)} h`;

export const JobsTable = ({ jobs }: { jobs: JobGroup[] }) => (
  <div id="jobs-table" class="stack">
    {jobs.length === 0 ? (
      <p class="panel panel-pad note">Nothing waits. Everything that was asked for is done.</p>
    ) : (
      <div class="table-wrap">
        <table class="table table-stack">
          <thead>
            <tr>
              <th>Job</th>
              <th class="num">Queued</th>
              <th class="num">Running</th>
              <th class="num">Failed</th>
              <th class="num">Oldest</th>
            </tr>
          </thead>
          <tbody>
            {jobs.map((job) => (
              <tr>
                <td>
                  <b class="table-title">{jobName(job.type)}</b>
                  {job.lastError ? <span class="table-sub bad">{job.lastError}</span> : null}
                </td>
                <td class="num" data-label="Queued">
                  {num(job.queued)}
                </td>
                <td class="num" data-label="Running">
                  {num(job.running)}
                </td>
                <td class="num" data-label="Failed">
                  {num(job.failed)}
                </td>
                <td class="num" data-label="Oldest">
                  {job.oldestSeconds === null ? "–" : seconds(job.oldestSeconds)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
    {jobs.some((job) => job.failed > 0) ? (
      <div class="form-foot">
        <Post action="/dashboard/memory/engine/jobs/retry" target="#jobs-table">
          <button class="btn">
            <Icon name="refresh" />
            Try the failed ones again
          </button>
        </Post>
      </div>
    ) : null}
  </div>
);
