"""napsets."""
