export class Journal {
  constructor(file: string);
  write(kind: number, numbers: readonly number[]): void;
}
