import { Command } from '../components/copy.js';
import { Empty } from '../components/empty.js';

/** What a store without any queue shows. */
export function FirstSteps() {
  return (
    <Empty title="There is no queue yet">
      <p>A queue begins with its first job. Add one, with the same --store as this dashboard:</p>
      <Command line={`npx crore push mails '{"to":"ada"}'`} />
      <p>And to work it, let an executable run for each job:</p>
      <Command line="npx crore work mails -- echo {}" />
    </Empty>
  );
}
