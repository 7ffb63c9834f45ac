export class Recorder {
  constructor(dir: string, name: string);
  readonly name: string;
  write(line: object): void;
}
