import { type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { ConnectRouter } from '@connectrpc/connect';
import type { ServerReflectionRequest } from '../proto/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection } from '../proto/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionAlpha } from '../proto/grpc/reflection/v1alpha/reflection_pb.js';

const NOT_FOUND = 5;
const INVALID_ARGUMENT = 3;

/** Tells tools such as grpcurl which services this server has. */
export class Reflection {
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();
  readonly #services: readonly string[];

  constructor(services: readonly DescService[]) {
    const all = [...services, ServerReflection, ServerReflectionAlpha];
    this.#services = all.map(({ typeName }) => typeName);
    for (const { file } of all) this.#learn(file);
  }

  routes(router: ConnectRouter): void {
    const answer = (requests: AsyncIterable<Pick<ServerReflectionRequest, 'host' | 'messageRequest'>>) =>
      this.#answer(requests);
    router.service(ServerReflection, { serverReflectionInfo: (requests) => answer(requests) as never });
    router.service(ServerReflectionAlpha, { serverReflectionInfo: (requests) => answer(requests as never) as never });
  }

  async *#answer(requests: AsyncIterable<Pick<ServerReflectionRequest, 'host' | 'messageRequest'>>) {
    for await (const request of requests) {
      const { host, messageRequest } = request;
      const originalRequest = { host, messageRequest };
      yield { validHost: host, originalRequest, messageResponse: this.#respond(messageRequest) };
    }
  }

  #respond({ case: kind, value }: ServerReflectionRequest['messageRequest']): object {
    switch (kind) {
      case 'listServices':
        return { case: 'listServicesResponse', value: { service: this.#services.map((name) => ({ name })) } };
      case 'fileByFilename':
        return this.#fileOf(this.#files.get(value), value);
      case 'fileContainingSymbol':
        return this.#fileOf(this.#symbols.get(value), value);
      case 'fileContainingExtension':
      case 'allExtensionNumbersOfType':
        return refusal(NOT_FOUND, 'no extensions are available');
      default:
        return refusal(INVALID_ARGUMENT, 'empty request');
    }
  }

  #fileOf(file: DescFile | undefined, what: string): object {
    if (!file) return refusal(NOT_FOUND, `unknown symbol or file '${what.slice(0, 80)}'`);
    const needed = withImports(file);
    const fileDescriptorProto = needed.map((one) => toBinary(FileDescriptorProtoSchema, one.proto));
    return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
  }

  #learn(file: DescFile): void {
    for (const one of withImports(file)) {
      this.#files.set(one.proto.name, one);
      const symbol = (name: string) => this.#symbols.set(name, one);
      const messages = [...one.messages];
      for (const message of messages) {
        symbol(message.typeName);
        for (const field of message.fields) symbol(`${message.typeName}.${field.name}`);
        for (const inner of message.nestedEnums) symbol(inner.typeName);
        messages.push(...message.nestedMessages);
      }
      for (const known of one.enums) symbol(known.typeName);
      for (const service of one.services) {
        symbol(service.typeName);
        for (const method of service.methods) symbol(`${service.typeName}.${method.name}`);
      }
    }
  }
}

/** A file preceded by everything it imports: tools expect all of it at once. */
function withImports(file: DescFile, seen = new Set<DescFile>()): DescFile[] {
  if (seen.has(file)) return [];
  seen.add(file);
  return [...file.dependencies.flatMap((one) => withImports(one, seen)), file];
}

function refusal(errorCode: number, errorMessage: string): object {
  return { case: 'errorResponse', value: { errorCode, errorMessage } };
}
