// A handler module that ends its process while it is loaded.
process.exit(9);
