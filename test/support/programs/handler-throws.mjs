// A handler module that cannot be loaded.
throw new SyntaxError('broken at import');
