/** What we read of a chat completion. */
import { z } from "zod";

export const completion = z.looseObject({
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string() }) })).min(1),
  usage: z.looseObject({ total_tokens: z.int().min(0) }).nullish(),
});
