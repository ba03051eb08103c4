/** What a page says when there is nothing to show, or something went wrong. */
import { type Chrome, Page } from "./layout.tsx";
import { Empty } from "./parts.tsx";

export interface ErrorProps {
  chrome: Chrome;
  status: number;
  title: string;
  text: string;
  requestId: string | null;
}

export const ErrorPage = ({ chrome, status, title, text, requestId }: ErrorProps) => (
  <Page title={title} current={null} chrome={chrome}>
    <section class="panel" aria-labelledby="err-h">
      <Empty
        title={title}
        level={1}
        lost
        actions={
          <>
            <a class="btn btn-primary" href="/dashboard/memory">
              All memories
            </a>
            <a class="btn" href="/dashboard/activity/receipts">
              Activity
            </a>
          </>
        }
      >
        <p>{text}</p>
      </Empty>
    </section>
    <p class="note center">
      {status}
      {requestId ? (
        <>
          , request <code>{requestId}</code>. It is in the log under this id.
        </>
      ) : (
        "."
      )}
    </p>
  </Page>
);
