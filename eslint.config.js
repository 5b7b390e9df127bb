import tseslint from 'typescript-eslint';

const pureFolders = ['src/topology/**/*.ts', 'src/scheduling/**/*.ts'];

export default tseslint.config(
  {
    ignores: [
      'build/**',
      'dist/**',
      'dist-tools/**',
      'node_modules/**',
      '**/*.mjs',
      '**/*.cjs',
      'eslint.config.js',
      'vitest.config.ts',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // Bounds are known where typed arrays are indexed; a check per element costs on the hot path.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // Interfaces that user code implements may be sync or async.
      '@typescript-eslint/no-invalid-void-type': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/require-await': 'off',
      'no-console': 'error',
    },
  },
  {
    files: ['src/cli/**/*.ts', 'bench/**/*.ts', 'faults/**/*.ts', 'tools/**/*.ts', 'examples/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: pureFolders,
    ignores: ['**/*.test.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        'process',
        'setTimeout',
        'setInterval',
        'setImmediate',
        'performance',
        'crypto',
        'fetch',
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'Time comes in as an argument.' },
        { object: 'Math', property: 'random', message: 'Chance comes in as an argument.' },
      ],
    },
  },
);
