/** An object with some of its methods replaced; the others stay its own. */
export function replaced<Whole extends object>(whole: Whole, methods: Partial<Whole>): Whole {
  return new Proxy(whole, {
    get(target, name) {
      const value = Reflect.get(Object.hasOwn(methods, name) ? methods : target, name) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
